package core_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// side is a limiter with a guard of random rules.
type side struct {
	limiter *core.Limiter
	guard   *core.Guard
}

// twins are two limiters with the same rules. One counts in this process, where a refused call
// leaves nothing. To the other, the subjects of a call lie on several servers.
type twins struct {
	*rapid.T
	rules          []core.Rule
	subjects       []string // of the rules; some of them have one together
	process, shard side
}

// On several servers, calls are answered and charged as in one process: a call that is refused, by a
// limit, a ban, a block, or because its cost never fits, changes no counter. Explain says the same on both.
func TestShardsDecideAsOneProcess(t *testing.T) {
	var traces atomic.Int64
	for name, options := range map[string]core.Options{
		"cluster": {Redis: redistest.StartCluster(t).Client(t), Timeout: patient},
		"ring":    {Redis: redistest.StartRing(t, 3).Client(t), Timeout: patient},
	} {
		t.Run(name, func(t *testing.T) {
			refused := make(map[core.Reason]bool) // for each of the four reasons of explainedStatus
			trace := func(t *rapid.T) {
				options.Prefix = fmt.Sprint("trace", traces.Add(1))
				drawTwins(t, options).play(refused)
			}
			for len(refused) < 4 && !t.Failed() { // few traces may miss one of them
				rapid.Check(t, trace)
			}
		})
	}
}

func drawTwins(t *rapid.T, options core.Options) *twins {
	w := &twins{T: t}
	for i := range rapid.IntRange(2, 4).Draw(t, "rules") {
		w.subjects = append(w.subjects, fmt.Sprint("subject:", rapid.IntRange(0, i).Draw(t, "subject")))
		w.rules = append(w.rules, drawShardedRule(t, i, w.subjects[i]))
	}
	w.process, w.shard = w.side(core.Options{}), w.side(options)
	core.GiveBackAtOnce(w.shard.limiter)
	return w
}

func (w *twins) side(options core.Options) side {
	options.Logger = slog.New(slog.DiscardHandler)
	limiter, err := core.New(options)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(limiter.Close)
	guard, err := limiter.Guard(w.rules...)
	if err != nil {
		w.Fatal(err)
	}
	return side{limiter, guard}
}

// drawShardedRule draws a rule that counts a subject. A call names its plan and its cost in headers.
// No window ends during the test.
func drawShardedRule(t *rapid.T, i int, subject string) core.Rule {
	const month = 30 * 24 * time.Hour
	limit := func(of string, window time.Duration) core.Limit {
		limit := core.Per(rapid.IntRange(1, 4).Draw(t, of), window)
		switch rapid.IntRange(0, 4).Draw(t, "algorithm") {
		case 0:
			limit = limit.Fixed()
		case 1:
			limit = core.PerCalendarMonth(limit.Max, "UTC")
		case 2:
			limit = limit.Log()
		case 3:
			limit = limit.Bucket(limit.Max)
		}
		return limit
	}
	r := core.Rule{Name: fmt.Sprint("rule", i), Limit: limit("max", month), Key: key(subject)}
	if rapid.Bool().Draw(t, "also") {
		if further := limit("further max", 2*month); further.Window != r.Limit.Window {
			r.Also = []core.Limit{further}
		}
	}
	if rapid.Bool().Draw(t, "plans") {
		r.Plans = map[string]core.Limit{"internal": core.Unlimited}
		r.Plan = func(c core.Request) (string, error) { return headerOf(c, "X-Plan", i), nil }
	}
	r.Mode = rapid.SampledFrom([]core.Mode{core.Enforce, core.Enforce, core.Enforce, core.Soft, core.DryRun}).Draw(t, "mode")
	r.Cost = core.CostBySize(1)
	if rapid.IntRange(0, 3).Draw(t, "by size") > 0 {
		r.Cost = func(c core.Request) int {
			cost, _ := strconv.Atoi(headerOf(c, "X-Cost", i))
			return cost
		}
	}
	return r
}

// headerOf returns the value of a header for one rule.
func headerOf(c core.Request, name string, rule int) string {
	if lines := c.Header(fmt.Sprint(name, rule)); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

func (w *twins) play(refused map[core.Reason]bool) {
	for range rapid.IntRange(1, 15).Draw(w.T, "calls") {
		if rapid.IntRange(0, 3).Draw(w.T, "operate") == 0 {
			w.mark(rapid.IntRange(0, len(w.rules)-1).Draw(w.T, "rule"), marksOf)
		}
		w.call(refused)
	}
	for i := range w.rules { // what a mark hid is compared, too
		w.mark(i, []string{""})
	}
	w.compare("in the end, without marks")
}

var marksOf = []string{"", "unlimited", "unlimited", "blocked", "banned", "limit"}

// mark gives the subject of a rule one of these marks on both sides, or removes all. The rate of a
// bucket stays, because each rate is counted separately.
func (w *twins) mark(i int, marks []string) {
	name, subject, limit := w.rules[i].Name, w.subjects[i], w.rules[i].Limit
	what := rapid.SampledFrom(marks).Draw(w.T, "mark")
	if limit.Max = rapid.IntRange(1, 5).Draw(w.T, "override's max"); what == "limit" && limit.Algorithm == core.TokenBucket {
		what = ""
	}
	w.eachSide(func(l *core.Limiter) (err error) {
		overrides, err := operate.New(l).Overrides(name)
		switch what {
		case "":
			_, unbanned := operate.New(l).Unban(background, name, subject)
			_, removed := overrides.Remove(background, subject)
			return errors.Join(err, unbanned, removed)
		case "banned":
			return errorOf(operate.New(l).Ban(background, name, subject, time.Hour))
		case "limit":
			return overrides.Set(background, subject, operate.Override{Limits: []core.Limit{limit}})
		default:
			return overrides.Set(background, subject, operate.Override{Unlimited: what == "unlimited", Blocked: what == "blocked"})
		}
	})
}

func (w *twins) eachSide(do func(l *core.Limiter) error) {
	for _, s := range []side{w.process, w.shard} {
		if err := do(s.limiter); err != nil {
			w.Fatal(err)
		}
	}
}

// call makes the same call on both sides.
func (w *twins) call(refused map[core.Reason]bool) {
	drawn := newView("POST", "/")
	drawn.BodySize = rapid.SampledFrom([]int64{1, 1, 2, 5, -1}).Draw(w.T, "size")
	for i := range w.rules {
		drawn.With(fmt.Sprint("X-Plan", i), rapid.SampledFrom([]string{"", "internal"}).Draw(w.T, "plan"))
		drawn.With(fmt.Sprint("X-Cost", i), rapid.SampledFrom([]string{"1", "1", "1", "1", "1", "0", "2", "5"}).Draw(w.T, "cost"))
	}
	view := func() *fakeView {
		v := *drawn
		v.Response = http.Header{}
		return &v
	}
	before, _ := w.counted(w.shard)
	one, several := w.explain(w.process, view()), w.explain(w.shard, view())
	want, got := status(w.process.guard.Check(view())), status(w.shard.guard.Check(view()))
	if got != want || explainedStatus(one, want) != want || explainedStatus(several, want) != want {
		w.Fatalf("%v, size %d: status %d on several servers and %d in a process, explained as %s by %q and %s by %q",
			drawn.Request, drawn.BodySize, got, want, several.Reason, several.Rule, one.Reason, one.Rule)
	}
	awaitDryRuns(w, w.shard.limiter)
	if after, _ := w.counted(w.shard); got != 200 && after != before {
		w.Fatalf("%v, size %d: refused with %d, which changed %s to %s", drawn.Request, drawn.BodySize, got, before, after)
	}
	if got != 200 {
		refused[one.Reason] = true
	}
	w.compare(fmt.Sprintf("%v, size %d: answered with %d", drawn.Request, drawn.BodySize, got))
}

// counted returns what the counters and the bans of all rules hold.
func (w *twins) counted(s side) (counters, bans string) {
	for i, r := range w.rules {
		x, err := operate.New(s.limiter).Inspect(background, w.subjects[i])
		if err != nil {
			w.Fatal(err)
		}
		for _, l := range x.Rules[i].Limits {
			counters += fmt.Sprintf("%s %v used %d; ", r.Name, l.Limit, l.Used)
		}
		bans += fmt.Sprintf("%s banned %t, %d bans, %d strikes; ", r.Name, !x.Rules[i].BannedUntil.IsZero(), x.Rules[i].Bans, x.Rules[i].Strikes)
	}
	return counters, bans
}

func (w *twins) compare(when string) {
	counters, bans := w.counted(w.shard)
	if wantCounters, wantBans := w.counted(w.process); counters != wantCounters || bans != wantBans {
		w.Fatalf("%s:\n%s%s on several servers,\n%s%s in a process", when, counters, bans, wantCounters, wantBans)
	}
}

func (w *twins) explain(s side, v adapter.View) operate.Explanation {
	x, err := operate.New(s.limiter).ExplainView(v)
	if err != nil {
		w.Fatal(err)
	}
	return x
}

// explainedStatus returns the status of a call that is explained so. A cost that never fits has one
// of two.
func explainedStatus(x operate.Explanation, got int) int {
	switch x.Reason {
	case core.LimitExceeded, core.Banned, core.Blocked:
		return 429
	case core.CostTooHigh:
		if got == 413 {
			return 413
		}
		return 400
	default:
		return 200
	}
}
