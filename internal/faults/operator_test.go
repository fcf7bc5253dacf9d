package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const operatorFault = "redis-server stands still, is slow (200 ms), refuses commands, is full, a replica, loading, restarted empty, or flushed, " +
	"while three processes call and an operator asks everything in turn, on the page too"

// operated are the storeFaults of a server that an operator asks about.
func operated(w *wire) (all []storeFault) {
	unanswered := []core.StoreErrorClass{core.StoreTimeout, core.StoreNoConnection, core.StoreUnreachable}
	all = []storeFault{{
		fault: "stopped", classes: unanswered,
		inject: func(s *service, _ *redis.Client) { s.server.Stop() }, end: func(s *service, _ *redis.Client) { s.server.Continue() },
	}, {
		fault: "flushed", forgets: true, inject: do([]any{"flushall"}), end: do(),
	}, known("READONLY")}
	if !long() {
		return append(all, without("evalsha", "eval"))
	}
	all = append(all, known("OOM"), storeFault{
		fault: "slow", classes: unanswered,
		inject: func(*service, *redis.Client) { w.inject(toxic{"latency", "downstream", `"latency": 200`}) },
		end:    func(*service, *redis.Client) { w.restore() },
	})
	for _, command := range []string{
		"del", "get", "mget", "set", "pexpireat", "time", "zadd", "zcount", "zrange", "zrangebyscore", "zrem", "zremrangebyscore", "zrevrange", "zscore",
		"xadd", "xrevrange",
	} {
		a := without(command)
		a.rare = true // a single server needs no MGET, for example
		all = append(all, a)
	}
	loading := known("LOADING")
	loading.classes = append(loading.classes, core.StoreConnectionLost, core.StoreUnreachable)
	return append(all, without("evalsha", "eval"), storeFault{
		fault: "killed", classes: append(unanswered, core.StoreConnectionLost), forgets: true,
		inject: func(s *service, _ *redis.Client) { s.server.Kill() }, end: func(s *service, _ *redis.Client) { s.server.Restart() },
	}, loading)
}

// known returns one of the storeFaults that callers meet.
func known(name string) storeFault {
	return storeFaults[slices.IndexFunc(storeFaults, func(a storeFault) bool { return a.fault == name })]
}

// without is the storeFault in which the limiter's user may not call some commands.
func without(commands ...string) storeFault {
	forbid, allow := []any{"acl", "setuser", "default"}, []any{"acl", "setuser", "default", "+@all"}
	for _, command := range commands {
		forbid = append(forbid, "-"+command)
	}
	return storeFault{
		fault: fmt.Sprint("without ", commands), classes: []core.StoreErrorClass{core.StoreRefused}, inject: do(forbid), end: do(allow),
	}
}

// While a server fails in any of these ways, an operator's questions are answered, or fail, in
// time, and so are calls. Acknowledged acts hold, and no answer is wrong.
func TestOperatorAsksAnIllServer(t *testing.T) {
	args := append(slices.Clone(operatorUser), "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
	server := redistest.Start(t, args...)
	w := newWire(t, server)
	v := newDrill(t, server, w)
	v.silent = true
	alone := v.pass(storeFault{fault: "nobody asks", inject: do(), end: do()})
	v.silent = false
	asked := v.pass(storeFault{fault: "well", inject: do(), end: do()})
	for _, a := range operated(w) {
		v.pass(a)
	}
	v.pass(storeFault{fault: "well again", inject: do(), end: do()})
	v.own.limiter.Close()
	v.fleet.end()
	report(t, operatorFault, "%s; %s; p99 of calls %.1f ms beside the questions, %.1f ms without; all recovered at most %.2f s after the recovery, no goroutine left",
		wantInTime(t, "answers", v.late, v.sum.Bare), wantInTime(t, "calls", v.waited(), v.sum.Bare), millis(asked), millis(alone), v.recovery.Seconds())
}

// operator asks and does all that a limiter offers to operators.
type operator struct {
	t         *testing.T
	limiter   *core.Limiter
	page      *console.Handler
	overrides operate.Overrides // of the rule that fails closed
	phase     string            // ends the names of all subjects
	sure      bool              // what was acknowledged must hold
	acts      int
	// set is the last acknowledged override of a subject, and mayBeSet those that were not
	// acknowledged.
	set      int
	mayBeSet []int
	banned   map[string]bool // subjects, as far as it is known whether they are banned
}

func newOperator(t *testing.T, limiter *core.Limiter) *operator {
	t.Helper()
	o := &operator{t: t, limiter: limiter}
	var err error
	if o.overrides, err = operate.New(limiter).Overrides("closed"); err != nil {
		t.Fatal(err)
	}
	o.page, err = console.New(limiter, console.Options{
		Authorize: func(*http.Request) (console.Identity, error) {
			return console.Identity{Name: "operator", Role: console.Operator}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, o.page.Close)
	return o
}

// question is what an operator asks or does. ask returns what is wrong with the answer, or the
// error.
type question struct {
	name string
	ask  func(o *operator, ctx context.Context) (wrong any, err error)
}

var questions = []question{
	{"Top", func(o *operator, ctx context.Context) (any, error) {
		_, err := operate.New(o.limiter).Top(ctx, "", time.Hour)
		return nil, err
	}},
	{"Bans", func(o *operator, ctx context.Context) (any, error) {
		page, _, err := operate.New(o.limiter).Bans(ctx, "closed", "", 1000)
		return wrongIf(!slices.ContainsFunc(page, func(b operate.BanEntry) bool { return b.Subject == o.of("banned") }), page), err
	}},
	{"BanOf", func(o *operator, ctx context.Context) (any, error) {
		_, ok, err := operate.New(o.limiter).BanOf(ctx, "closed", o.of("banned"))
		return wrongIf(!ok, "no ban"), err
	}},
	{"Explain", func(o *operator, ctx context.Context) (any, error) {
		v := visit(ctx, o.of("blocked"))
		x, err := operate.New(o.limiter).Explain(ctx, operate.Call{Method: v.Method(), Path: v.Path(), Header: v.Request})
		return wrongIf(!explains(x, core.Blocked), x), err
	}},
	{"ExplainView", func(o *operator, ctx context.Context) (any, error) {
		x, err := operate.New(o.limiter).ExplainView(visit(ctx, o.of("banned")))
		return wrongIf(!explains(x, core.Banned), x), err
	}},
	{"Inspect", func(o *operator, ctx context.Context) (any, error) {
		x, err := operate.New(o.limiter).Inspect(ctx, o.of("blocked"))
		return wrongIf(!explains(x, core.Blocked), x), err
	}},
	{"Audit", func(o *operator, ctx context.Context) (any, error) {
		_, err := operate.New(o.limiter).Audit(ctx, "", 100)
		return nil, err
	}},
	{"Overrides.Get", func(o *operator, ctx context.Context) (any, error) {
		found, ok, err := o.overrides.Get(ctx, o.of("blocked"))
		return wrongIf(!ok || !found.Blocked, found), err
	}},
	{"Overrides.List", func(o *operator, ctx context.Context) (any, error) {
		page, _, err := o.overrides.List(ctx, "", 1000)
		return wrongIf(!slices.ContainsFunc(page, func(x operate.Override) bool { return x.Subject == o.of("blocked") && x.Blocked }), page), err
	}},
	{"Overrides.Set", func(o *operator, ctx context.Context) (any, error) {
		o.acts++
		err := o.overrides.Set(ctx, o.of("changing"), operate.Override{Max: o.acts})
		o.noteSet(o.acts, err)
		return nil, err
	}},
	{"Overrides.Remove", func(o *operator, ctx context.Context) (any, error) {
		_, err := o.overrides.Remove(ctx, o.of("nobody"))
		return nil, err
	}},
	{"Ban", func(o *operator, ctx context.Context) (any, error) {
		o.acts++
		subject := o.of(fmt.Sprint("ban", o.acts))
		_, err := operate.New(o.limiter).Ban(ctx, "closed", subject, time.Hour)
		o.noteBan(subject, err)
		return nil, err
	}},
	{"Unban", func(o *operator, ctx context.Context) (any, error) {
		_, err := operate.New(o.limiter).Unban(ctx, "closed", o.of("nobody"))
		return nil, err
	}},
	{"Reset", func(o *operator, ctx context.Context) (any, error) {
		_, err := operate.New(o.limiter).Reset(ctx, "closed", o.of("nobody"))
		return nil, err
	}},
	page(""), page("offenders"), page("subject?subject=alice"), page("explain?method=GET&path=/"), page("rules"), page("bans"), page("audit"),
	page("api/offenders"),
}

// page is the question for a page, which must come, also if Redis does not answer.
func page(name string) question {
	return question{"the page " + name, func(o *operator, ctx context.Context) (any, error) {
		w := httptest.NewRecorder()
		o.page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/limits/"+name, nil))
		if w.Code != http.StatusOK {
			return fmt.Sprint(w.Code, " ", w.Body), nil
		}
		if strings.Contains(w.Body.String(), "Redis did not answer") || strings.Contains(w.Body.String(), "Redis refuses") {
			return nil, errOnPage
		}
		return nil, nil
	}}
}

// errOnPage is the error of a page that says that Redis did not answer.
var errOnPage = &core.StoreError{Class: core.StoreBreakerOpen, Err: fmt.Errorf("a page says so")}

func wrongIf(wrong bool, answer any) any {
	if wrong {
		return answer
	}
	return nil
}

// explains reports whether a report gives this reason for the rule that fails closed.
func explains(x operate.Explanation, reason core.Reason) bool {
	return slices.ContainsFunc(x.Rules, func(r operate.ExplainedRule) bool { return r.Name == "closed" && r.Reason == reason })
}

// of returns the subject of this name in the present phase.
func (o *operator) of(name string) string { return name + "@" + o.phase }

// noteSet notes which values an override may have from now on. A command whose reply did not come may
// be executed later, so its value stays possible.
func (o *operator) noteSet(value int, err error) {
	switch failed := new(core.StoreError); {
	case err == nil:
		o.set = value
	case errors.As(err, &failed) && failed.Class.MayHaveCharged():
		o.mayBeSet = append(o.mayBeSet, value)
	}
}

// noteBan notes whether a subject is banned, unless that is not known.
func (o *operator) noteBan(subject string, err error) {
	if failed := new(core.StoreError); !errors.As(err, &failed) || !failed.Class.MayHaveCharged() {
		o.banned[subject] = err == nil
	}
}
