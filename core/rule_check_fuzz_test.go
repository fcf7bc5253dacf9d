package core_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// FuzzRule checks that a rule with any values in its fields either returns an error that names the
// field, or makes a guard that limits. Then a first call passes, the rest of MaxCount passes too,
// and one more call is refused.
func FuzzRule(f *testing.F) {
	add := func(r core.Rule, zone string) {
		days := core.PerCalendarDay(1, zone).Calendar == r.Limit.Calendar
		f.Add(r.Seconds, r.MaxCount, r.Limit.Max, int64(r.Limit.Window), days, zone, byte(r.Limit.Algorithm), r.Limit.Burst, r.Name, strings.Join(r.Paths, "\n"),
			strings.Join(r.Except, "\n"), strings.Join(r.Methods, "\n"), r.Lease, r.OnStoreError == core.FailClosed, 0.5, r.Message, r.Ban.After, int64(r.Ban.For),
			int64(r.Ban.Max), r.NeedLogin, byte(r.Mode))
	}
	for _, r := range ruleSeeds {
		add(r, "")
	}
	add(core.Rule{Limit: core.PerCalendarDay(5, "UTC")}, "UTC")
	add(core.Rule{}, "../../etc/passwd")
	add(core.Rule{Seconds: 1}, "Local\x00")
	f.Fuzz(func(t *testing.T, seconds, most, limitMax int, window int64, days bool, zone string, algorithm byte, burst int, name, paths, except, methods string,
		lease int, closed bool, share float64, message string, banAfter int, banFor, banMax int64, needLogin bool, mode byte) {
		policy := core.CountLocally(share)
		if closed {
			policy = core.FailClosed
		}
		rule := core.Rule{
			Seconds: seconds, MaxCount: most, Name: name,
			Limit: core.Limit{Max: limitMax, Window: time.Duration(window), Algorithm: core.Algorithm(algorithm), Burst: burst},
			Paths: lines(paths), Except: lines(except), Methods: lines(methods), Lease: lease, OnStoreError: policy,
			Message: message, Ban: core.Ban{After: banAfter, For: time.Duration(banFor), Max: time.Duration(banMax)}, NeedLogin: needLogin, Mode: core.Mode(mode),
		}
		switch {
		case days && zone != "":
			rule.Limit.Calendar = core.PerCalendarDay(1, zone).Calendar
		case zone != "":
			rule.Limit.Calendar = core.PerCalendarMonth(1, zone).Calendar
		}
		tried := &triedRule{T: t, rule: rule}
		options := core.Options{MaxKeys: 4, OnDecision: func(_ context.Context, e core.Event) {
			d := e.Decision
			tried.heard = append(tried.heard, d)
		}}
		if needLogin {
			options.Identify = func(core.Request) (string, error) { return "alice", nil }
		}
		limiter := newLimiter(t, options)
		core.UseClock(limiter, func() int64 { return 1_800_000_000_000_000 })
		tried.rule.Cost = func(core.Request) int { return tried.cost }
		guard, err := limiter.Guard(tried.rule)
		if err != nil {
			wantField(t, err)
			return
		}
		tried.guard = guard
		tried.use()
	})
}

var ruleSeeds = []core.Rule{
	{}, {Seconds: 1}, {Seconds: -1}, {Seconds: math.MaxInt}, {Seconds: 31_622_400}, {Limit: core.Limit{Max: 5, Window: time.Millisecond}}, {Limit: core.Limit{Max: 5, Window: time.Millisecond - 1}},
	{Limit: core.Limit{Max: 5, Window: year}}, {Limit: core.Limit{Max: 5, Window: year + 1}}, {Limit: core.Limit{Max: 5, Window: math.MaxInt64}},
	{Limit: core.Limit{Max: 5, Window: math.MinInt64}}, {Seconds: 1, Limit: core.PerSecond(5)}, {MaxCount: 1, Limit: core.PerSecond(5)},
	{Seconds: 1, MaxCount: mostPermits}, {Seconds: 1, MaxCount: mostPermits + 1}, {Seconds: 1, MaxCount: math.MaxInt}, {Seconds: 1, MaxCount: math.MinInt}, {Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: 99}},
	{Limit: core.PerSecond(10_000).Log()}, {Limit: core.Limit{Max: 3, Window: time.Second, Algorithm: core.Concurrency}},
	{Limit: core.PerSecond(7).Fixed(), Lease: 7}, {Seconds: 1, MaxCount: 7, Lease: 8}, {Seconds: 1, Lease: math.MinInt},
	{Limit: core.PerHour(7).Aligned()}, {Limit: core.Limit{Max: 3, Window: 7 * time.Second}.Bucket(0)},
	{Limit: core.Limit{Max: 3, Window: 7 * time.Second}.Bucket(11)}, {Limit: core.Limit{Max: 3, Window: 7 * time.Second}.Bucket(math.MaxInt)},
	{Limit: core.Limit{Max: mostPermits - 1, Window: year - time.Microsecond}.Bucket(0)}, {Seconds: 1, OnStoreError: core.FailClosed},
	{Seconds: 1, OnStoreError: core.CountLocally(0.5)}, {Seconds: 1, OnStoreError: core.CountLocally(math.NaN())},
	{Seconds: 1, OnStoreError: core.CountLocally(math.SmallestNonzeroFloat64)},
	{Seconds: 1, Name: "\r\n"}, {Seconds: 1, Name: strings.Repeat("n", 129)}, {Seconds: 1, Paths: []string{"/a/**", "/{b,c}/*"}},
	{Seconds: 1, Paths: []string{"/[", "x"}}, {Seconds: 1, Paths: []string{"/{id}"}}, {Seconds: 1, Except: []string{"/\xff"}},
	{Seconds: 1, Methods: []string{"GET", "get"}}, {Seconds: 1, Message: "\xff"}, {Seconds: 1, Ban: core.Ban{After: 3, For: time.Hour}},
	{Seconds: 1, Ban: core.Ban{After: 1, For: math.MinInt64, Max: math.MaxInt64}}, {Seconds: 1, NeedLogin: true}, {Seconds: 1, Mode: core.DryRun},
	{Name: "n", Seconds: 1, Mode: core.Soft}, {Seconds: 1, Mode: 99},
}

// lines returns the lines of a text, or none for the empty text.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// wantField checks that an error is a *RuleError about a field that a Rule has.
func wantField(t *testing.T, err error) {
	t.Helper()
	var wrong *core.RuleError
	if !errors.As(err, &wrong) || wrong.Why == "" {
		t.Fatalf("%v does not say what is wrong", err)
	}
	field, inside, _ := strings.Cut(wrong.Field, ".")
	of, ok := reflect.TypeFor[core.Rule]().FieldByName(field)
	if ok && inside != "" {
		_, ok = of.Type.FieldByName(inside)
	}
	if !ok {
		t.Errorf("%v: a rule has no field %q", err, wrong.Field)
	}
}

// triedRule is a rule that is called, at one moment of time.
type triedRule struct {
	*testing.T
	rule  core.Rule
	guard *core.Guard
	cost  int
	heard []core.Decision
}

// call makes a call of a cost, and reports whether it passed. The handler runs while the next calls
// are made.
func (r *triedRule) call(cost int, next func()) (status int) {
	r.Helper()
	r.cost = cost
	answer := r.guard.Check(newView("GET", "/a/b"))
	if answer.Refusal != nil {
		return answer.Refusal.Status
	}
	answer.Run(func() (status int) { next(); return 200 })
	return 200
}

// use takes all permits of the rule.
func (r *triedRule) use() {
	r.Helper()
	nothing := func() {}
	first := r.call(1, nothing)
	if first != 200 {
		r.Fatalf("%+v: the first call gets %d", r.rule, first)
	}
	if len(r.heard) == 0 {
		r.wantElsewhere()
		return
	}
	limit := r.heard[0].Limit
	size := limit.Max
	if limit.Algorithm == core.TokenBucket && limit.Burst != 0 {
		size = limit.Burst
	}
	if size < 1 || int64(size) > 1e12 || r.rule.MaxCount != 0 && limit.Max != r.rule.MaxCount {
		r.Fatalf("%+v: counted by %v", r.rule, limit)
	}
	over := 429
	if r.rule.Mode != core.Enforce {
		over = 200
	}
	if limit.Algorithm == core.Concurrency {
		r.fill(min(size, 20), size <= 20, over)
		return
	}
	if size > 1 && r.call(size-1, nothing) != 200 {
		r.Fatalf("%+v: the second call, of the rest, is refused", r.rule)
	}
	if left := r.heard[len(r.heard)-1].Remaining; left != 0 {
		r.Fatalf("%+v: %d left of a rule that is used up", r.rule, left)
	}
	if got := r.call(1, nothing); got != over {
		r.Fatalf("%+v: one call more gets %d", r.rule, got)
	}
	exceeded := slices.ContainsFunc(r.heard, func(d core.Decision) bool { return d.Reason == core.DryRunExceeded })
	if last := r.heard[len(r.heard)-1]; exceeded != (r.rule.Mode == core.DryRun) || (last.Reason == core.SoftExceeded) != (r.rule.Mode == core.Soft) || last.RetryAfter <= 0 && over == 429 {
		r.Errorf("%+v: one call more is answered %+v", r.rule, last)
	}
}

// fill makes calls inside each other's handlers, and one more that exceeds the limit.
func (r *triedRule) fill(calls int, all bool, over int) {
	if calls == 0 {
		if got := r.call(1, func() {}); all && got != over {
			r.Errorf("%+v: one call more at once gets %d", r.rule, got)
		}
		return
	}
	if got := r.call(1, func() { r.fill(calls-1, all, over) }); got != 200 {
		r.Errorf("%+v: a call that fits beside the others gets %d", r.rule, got)
	}
}

// wantElsewhere checks that a rule which counted nothing applies to other calls.
func (r *triedRule) wantElsewhere() {
	r.Helper()
	if len(r.rule.Paths) == 0 && len(r.rule.Except) == 0 && len(r.rule.Methods) == 0 {
		r.Errorf("%+v counts nothing", r.rule)
	}
	if slices.Contains(r.rule.Paths, "/a/b") && len(r.rule.Except) == 0 && len(r.rule.Methods) == 0 {
		r.Errorf("%+v does not count the path that it names", r.rule)
	}
}
