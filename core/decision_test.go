package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A Decision is printed in words, and with its subject only by %+v.
func TestDecisionInWords(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	five := core.Limit{Max: 5, Window: time.Minute, Algorithm: core.FixedWindow}
	allowed, _ := limiter.MustCounter("reply", five).AllowN(background, "user:alice", 5)
	refused, _ := limiter.MustCounter("reply", five).Allow(background, "user:alice")
	none, _ := limiter.MustCounter("free", core.Unlimited).Allow(background, "user:\nalice")
	bucket := core.PerSecond(1).Bucket(2)
	_, _ = limiter.MustCounter("mail", bucket).AllowN(background, "a", 2)
	turn, _ := limiter.MustPacer("mail", bucket).Reserve(background, "a", 1)
	both := core.Decision{Reason: core.NotLoggedIn, Rule: "both", Key: "k", Limit: five, Source: core.FromNobody}
	both.All = []core.Decision{both, allowed}
	for _, test := range []struct {
		d             core.Decision
		text, subject string
		rest          string // what %+v prints besides
	}{
		{allowed, `allowed by "reply": 0 left of 5/m fixed, reset after 1m0s, from memory`, `user:alice`, ""},
		{refused, `refused by "reply": limit_exceeded, 0 left of 5/m fixed, retry after 1m0s, from memory`, `user:alice`, ""},
		{none, `allowed by "free": unlimited`, `user:\nalice`, ""},
		{turn, `allowed by "mail": 0 left of 1/s burst 2, reset after 3s, wait 1s, from memory`, "a", ""},
		{both, `refused by "both": not_logged_in, 5/m fixed`, "k", `; allowed by "reply" for "user:alice": 0 left of 5/m fixed, reset after 1m0s, from memory`},
		{core.Decision{}, "no decision", "", ""},
	} {
		whole := strings.Replace(test.text, `": `, `" for "`+test.subject+`": `, 1) + test.rest
		for verb, want := range map[string]string{"%v": test.text, "%s": test.text, "%+v": whole, "%q": strconv.Quote(test.text)} {
			for _, value := range []any{test.d, &test.d} {
				if got := fmt.Sprintf(verb, value); got != want {
					t.Errorf("%s: %s\nwant %s", verb, got, want)
				}
			}
		}
		if bare := fmt.Sprintf("%#v", test.d); !strings.Contains(bare, fmt.Sprintf("Rule:%q", test.d.Rule)) {
			t.Errorf("%%#v: %s", bare)
		}
	}
}

// A Decision is logged as a group, without its subject.
func TestDecisionInALog(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	one := core.Limit{Max: 1, Window: time.Minute, Algorithm: core.FixedWindow}
	allowed, _ := limiter.MustCounter("reply", one).Allow(background, "user:alice")
	refused, _ := limiter.MustCounter("reply", one).Allow(background, "user:alice")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}}))
	bucket := core.PerSecond(1).Bucket(2)
	_, _ = limiter.MustCounter("mail", bucket).AllowN(background, "a", 2)
	turn, _ := limiter.MustPacer("mail", bucket).Reserve(background, "a", 1)
	for d, want := range map[*core.Decision]string{
		&turn:    `d.allowed=true d.reason=allowed d.rule=mail d.limit="1/s burst 2" d.source=memory d.remaining=0 d.reset_after=3s d.wait=1s`,
		&allowed: `d.allowed=true d.reason=allowed d.rule=reply d.limit="1/m fixed" d.source=memory d.remaining=0 d.reset_after=1m0s`,
		&refused: `d.allowed=false d.reason=limit_exceeded d.rule=reply d.limit="1/m fixed" d.source=memory d.remaining=0 d.reset_after=1m0s d.retry_after=1m0s`,
		{Reason: core.NotLoggedIn, Rule: "n", Limit: one, Source: core.FromNobody}: `d.allowed=false d.reason=not_logged_in d.rule=n d.limit="1/m fixed" d.source=none`,
	} {
		log.Reset()
		logger.Info("", "d", *d)
		if got := strings.TrimSpace(log.String()); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

type ownKey struct{}

func TestContextWithExpose(t *testing.T) {
	limiter := newLimiter(t, core.Options{Expose: true, Identify: whoSays})
	free := core.Rule{Name: "outer", Seconds: 3600, NeedLogin: true, Cost: cost(0)}
	ctx, cancel := context.WithCancel(context.WithValue(background, ownKey{}, "own"))
	v := newView("GET", "/").As("alice")
	for _, guard := range []*core.Guard{
		newGuard(t, limiter, free), // a call that costs nothing has its user, too
		newGuard(t, limiter, core.Rule{Name: "inner", Seconds: 3600, MaxCount: 9}, core.Rule{Name: "third", Seconds: 3600, MaxCount: 20}),
	} {
		v.Ctx = ctx
		ctx = wantStatus(t, guard, v, 200).Context
		if user, ok := core.UserFrom(ctx); !ok || user != "alice" || ctx.Value(ownKey{}) != "own" || ctx.Value([]int{}) != nil {
			t.Errorf("user %q, and the caller's own value %v", user, ctx.Value(ownKey{}))
		}
	}
	if d, ok := core.DecisionFrom(ctx); !ok || d.Rule != "inner" || len(d.All) != 2 {
		t.Errorf("behind two: %+v", d)
	}
	if cancel(); ctx.Err() != context.Canceled {
		t.Error("the context does not end with the caller's")
	}
}

// A handler finds that nothing limits a call by an unlimited plan or override, or that costs nothing,
// as a direct call does.
func TestDecisionOfAnUnlimitedCall(t *testing.T) {
	limiter := newLimiter(t, core.Options{Expose: true})
	want, _ := limiter.MustCounter("n", core.PerHour(2)).With(core.Unlimited).Allow(background, "s")
	operator{t, limiter, "lifted", core.PerHour(2), nil}.lift(me)
	for _, rule := range []core.Rule{
		{Name: "n", Limit: core.PerHour(2), Plans: map[string]core.Limit{"staff": core.Unlimited}, Plan: planOf("staff")},
		{Name: "lifted", Limit: core.PerHour(2)},
		{Name: "free", Limit: core.PerHour(2), Cost: cost(0)},
	} {
		d, _ := core.DecisionFrom(wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 200).Context)
		if d.Limit != want.Limit || d.Remaining != want.Remaining || d.Source != want.Source || d.Reason != want.Reason || d.Rule != rule.Name {
			t.Errorf("%+v, want as much as %+v", d, want)
		}
	}
}

// OnDecision receives the call's own context, and runs before the handler.
func TestOnDecisionGetsTheContext(t *testing.T) {
	var got []any
	limiter := newLimiter(t, core.Options{OnDecision: func(ctx context.Context, _ core.Event) { got = append(got, ctx.Value(ownKey{})) }})
	v := newView("GET", "/")
	v.Ctx = context.WithValue(background, ownKey{}, "own")
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1}), v, 200)
	_, err := limiter.MustCounter("n", core.PerSecond(1)).Allow(v.Ctx, "s")
	_, err2 := peek(limiter, v.Ctx, "n", "s", core.PerSecond(1))
	if errors.Join(err, err2) != nil || !slices.Equal(got, []any{"own", "own"}) {
		t.Errorf("OnDecision saw %v, want the context of two decisions; %v, %v", got, err, err2)
	}
}
