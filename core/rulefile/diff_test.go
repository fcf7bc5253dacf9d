package rulefile

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// How many of three calls count after a change.
const fresh, kept, uncounted = 0, 3, -1

// diffs lists changes of a rule, with what Diff says about them and how many calls count then.
var diffs = []struct {
	name, before, after string
	limit               core.Limit // whose counter to look at
	used                int
	wants               []string
}{
	{"Max", "limit: 10/h", "limit: 20/h", core.PerHour(20), kept, []string{"limit 10/h becomes 20/h: counters keep their use"}},
	{"nothing", "limit: 10/h", "limit: 10/60m", core.PerHour(10), kept, nil},
	{"the spelling", "seconds: 3600\nmax_count: 10", "limit: 11/h", core.PerHour(11), kept, []string{"limit 10/h becomes 11/h: counters keep their use"}},
	{"window", "limit: 10/h", "limit: 10/24h", core.PerDay(10), fresh,
		[]string{"limit 10/h becomes 10/24h: counters start empty, because the window is another one"}},
	{"algorithm", "limit: 10/h", "limit: 10/h log", core.PerHour(10).Log(), fresh,
		[]string{"limit 10/h becomes 10/h log: counters start empty, because the algorithm is another one"}},
	{"burst", "limit: 10/h burst 10", "limit: 10/h burst 20", core.PerHour(10).Bucket(20), kept,
		[]string{"limit 10/h burst 10 becomes 10/h burst 20: counters keep their use"}},
	{"a bucket's window", "limit: 10/h burst 10", "limit: 10/24h burst 10", core.PerDay(10).Bucket(10), fresh,
		[]string{"limit 10/h burst 10 becomes 10/24h burst 10: counters start empty, because the window is another one"}},
	{"a window for a zone", "limit: 10/24h", "limit: 10/month@UTC", core.PerCalendarMonth(10, "UTC"), fresh,
		[]string{"limit 10/24h becomes 10/month@UTC: counters start empty, because the calendar is another one"}},
	{"zone", "limit: 10/month@UTC", "limit: 10/month@Asia/Tokyo", core.PerCalendarMonth(10, "Asia/Tokyo"), fresh,
		[]string{"limit 10/month@UTC becomes 10/month@Asia/Tokyo: counters start empty, because the calendar is another one"}},
	{"the window of slots", "limit: 10 at once", "limit: 10 at once lost after 10s", core.InFlight(10).LostAfter(10e9), fresh,
		[]string{"limit 10 at once becomes 10 at once lost after 10s: counters start empty, because the window is another one; calls in flight are not counted"}},
	{"key", "limit: 10/h", "limit: 10/h\nkey: host", core.PerHour(10), fresh,
		[]string{"key ip becomes host: counters start empty, because they are those of other subjects"}},
	{"the key of slots", "limit: 10 at once", "limit: 10 at once\nkey: host", core.InFlight(10), fresh,
		[]string{"key ip becomes host: counters start empty, because they are those of other subjects; calls in flight are not counted"}},
	{"the key's spelling", "limit: 10/h\nkey: \"header:X-Plan\"", "limit: 10/h\nkey: [\"header:x-plan\"]", core.PerHour(10), kept, nil},
	{"the user's key", "limit: 10/h\nneed_login: true", "limit: 10/h\nkey: user", core.PerHour(10), kept,
		[]string{"need_login true is gone"}},
	{"login", "limit: 10/h", "limit: 10/h\nneed_login: true", core.PerHour(10), fresh,
		[]string{"key ip becomes user: counters start empty, because they are those of other subjects",
			"need_login true is new: counters start empty, because they are those of other subjects"}},
	{"dry_run", "limit: 10/h", "limit: 11/h\nmode: dry_run", core.PerHour(11), fresh,
		[]string{"mode enforce becomes dry_run: counters start empty, because a rule in dry_run has counters of its own",
			"limit 10/h becomes 11/h: counters start empty, because a rule in dry_run has counters of its own"}},
	{"dry_run's end", "limit: 10/h\nmode: dry_run", "limit: 10/h", core.PerHour(10), fresh,
		[]string{"mode dry_run becomes enforce: counters start empty, because a rule in dry_run has counters of its own"}},
	{"soft after dry_run", "limit: 10/h\nmode: dry_run", "limit: 10/h\nmode: soft", core.PerHour(10), fresh,
		[]string{"mode dry_run becomes soft: counters start empty, because a rule in dry_run has counters of its own"}},
	{"soft", "limit: 10/h", "limit: 11/h\nmode: soft", core.PerHour(11), kept,
		[]string{"mode enforce becomes soft: counters keep their use", "limit 10/h becomes 11/h: counters keep their use"}},
	{"warn", "limit: 10/h", "limit: 10/h\nwarn: [0.8, 1]", core.PerHour(10), kept,
		[]string{"warn [0.8, 1] is new: counters keep their use"}},
	{"also", "limit: 10/h\nalso: [20/24h]", "limit: 10/h\nalso: [30/24h]", core.PerDay(30), kept,
		[]string{"also 20/24h becomes 30/24h: counters keep their use"}},
	{"a new limit beside it", "limit: 10/h", "limit: 10/h\nalso: [30/24h]", core.PerDay(30), fresh,
		[]string{"also 30/24h is new: counters start empty"}},
	{"a limit that takes the other's place", "limit: 10/h\nalso: [20/24h]", "limit: 20/24h", core.PerDay(20), kept,
		[]string{"limit 10/h becomes 20/24h: counters keep their use", "also 20/24h is gone"}},
	{"a plan", "limit: 10/h\nplan: plan_of\nplans: {pro: 20/24h}", "limit: 10/h\nplan: plan_of\nplans: {pro: 30/24h}", core.PerDay(30), kept,
		[]string{"plans.pro 20/24h becomes 30/24h: counters keep their use"}},
	{"a plan's window", "limit: 10/h\nplan: plan_of\nplans: {pro: 20/24h}", "limit: 10/h\nplan: plan_of\nplans: {pro: 20/2h}", core.Per(20, 2*3600e9), fresh,
		[]string{"plans.pro 20/24h becomes 20/2h: counters start empty, because the window is another one"}},
	{"a new plan", "limit: 10/h", "limit: 10/h\nplan: plan_of\nplans: {pro: 30/h}", core.PerHour(30), kept,
		[]string{"plans.pro 30/h is new: counters keep their use", "plan plan_of is new: counters keep their use"}},
	{"an unlimited plan", "limit: 10/h\nplan: plan_of\nplans: {pro: 20/h}", "limit: 10/h\nplan: plan_of\nplans: {pro: unlimited}", core.PerHour(20), uncounted,
		[]string{"plans.pro 20/h becomes unlimited: counters keep their use, but its callers are not counted any more"}},
	{"an unlimited plan's end", "limit: 10/h\nplan: plan_of\nplans: {pro: unlimited, x: 1/h}", "limit: 10/h\nplan: plan_of\nplans: {pro: 20/2h}", core.Per(20, 2*3600e9), fresh,
		[]string{"plans.pro unlimited becomes 20/2h: counters start empty", "plans.x 1/h is gone"}},
	{"other fields", "limit: 10/h\npaths: [/a, /b]\nlimit_for: tens", "limit: 10/h\nmessage: 'a \"word\"'\nlimit_for: twenties", core.PerHour(20), kept,
		[]string{"limit_for tens becomes twenties: counters keep their use, as far as its limits have the windows and algorithms of before",
			`message "a \"word\"" is new: counters keep their use`, "paths [/a, /b] is gone"}},
}

// Counters do what Diff says of them: three calls are charged, the rules are
// replaced while they are in flight, and a further call sees how many of them count.
func TestDiffAgreesWithReload(t *testing.T) {
	redis := redistest.Start(t).Client(t)
	for i, test := range diffs {
		var wants []string
		for _, want := range test.wants {
			wants = append(wants, `rule "api": `+want)
		}
		for engine, options := range map[string]core.Options{"memory": {}, "redis": {Redis: redis, Prefix: fmt.Sprint("diff", i)}} {
			t.Run(test.name+"/"+engine, func(t *testing.T) {
				options.OnThreshold = func(context.Context, core.Threshold) {}
				s := newDiffed(t, options, test.before)
				var changes []string
				used := uncounted
				s.during(3, func() {
					changes = texts(s.diff(t, "api", test.after))
					used = s.usedOf(t, test.limit)
				})
				if !slices.Equal(changes, wants) {
					t.Errorf("Diff returns\n%s\nwant\n%s", strings.Join(changes, "\n"), strings.Join(wants, "\n"))
				}
				if used != test.used {
					t.Errorf("%d of 3 calls count, want %d", used, test.used)
				}
			})
		}
	}
}

// A rule under another name is another rule, with its own counters.
func TestDiffOfNames(t *testing.T) {
	s := newDiffed(t, core.Options{}, "limit: 10/h")
	var changes []string
	s.during(3, func() { changes = texts(s.diff(t, "new", "limit: 20/h")) })
	if want := []string{`rule "new" is new, with 20/h: counters start empty`}; !slices.Equal(changes, want) {
		t.Errorf("Diff returns %v, want %v", changes, want)
	}
	s.guard = s.set.MustGuard("new")
	if used := s.usedOf(t, core.PerHour(20)); used != 0 {
		t.Errorf("%d calls count", used)
	}
	back := loadText(t, rulesText("api", "limit: 10/h"))
	if got := fmt.Sprint(s.set.Diff(back)); got != `[rule "new" is gone, with 20/h]` {
		t.Errorf("Diff returns %s", got)
	}
}

// diffed is a service whose rules are compared and replaced.
type diffed struct {
	set     *Set
	limiter *core.Limiter
	guard   *core.Guard

	mu   sync.Mutex
	left map[core.Limit]int // what the latest call had left
}

func rulesText(name, fields string) string {
	return "version: 1\nrules:\n  - name: " + name + "\n    " + strings.ReplaceAll(fields, "\n", "\n    ") + "\n"
}

func newDiffed(t *testing.T, options core.Options, fields string) *diffed {
	t.Helper()
	s := &diffed{left: make(map[core.Limit]int)}
	verify := func(_ context.Context, token string) (string, error) { return token, nil }
	options.Identify, options.OnDecision, options.Timeout = core.BearerToken(verify), s.note, patient
	options.Logger = slog.New(slog.DiscardHandler)
	limiter := limitertest.New(t, options)
	s.limiter = limiter
	functions := registered.clone()
	functions.LimitFor["tens"] = func(core.Request) (core.Limit, error) { return core.PerHour(10), nil }
	functions.LimitFor["twenties"] = func(core.Request) (core.Limit, error) { return core.PerHour(20), nil }
	var err error
	if s.set, err = Load(limiter, functions, write(t, "limits.yaml", rulesText("api", fields))); err != nil {
		t.Fatal(err)
	}
	s.limiter, s.guard = limiter, s.set.MustGuard("api")
	return s
}

func (s *diffed) note(_ context.Context, e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range append(slices.Clone(e.Decision.All), e.Decision) {
		if d.Source != core.FromNobody {
			s.left[d.Limit] = d.Remaining
		}
	}
}

// call makes a call by user, address and plan, and runs inside while it is in flight.
func (s *diffed) call(inside func()) {
	r := httptest.NewRequest("GET", "/a", nil)
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("X-Plan", "pro")
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside() })
	nethttplimit.With(s.guard)(handler).ServeHTTP(httptest.NewRecorder(), r)
}

// during runs inside while n calls are in flight.
func (s *diffed) during(n int, inside func()) {
	if n == 0 {
		inside()
		return
	}
	s.call(func() { s.during(n-1, inside) })
}

// diff compares the rules with others, and replaces them.
func (s *diffed) diff(t *testing.T, name, fields string) []Change {
	t.Helper()
	text := rulesText(name, fields)
	if name != "api" {
		text += strings.TrimPrefix(rulesText("api", "limit: 10/h"), "version: 1\nrules:\n")
	}
	next, err := Load(s.set.limiter, s.set.functions, write(t, "limits.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	changes := s.set.Diff(next)
	if err := reload(t, s.set, text); err != nil {
		t.Fatal(err)
	}
	return changes
}

// usedOf makes a call and returns how many calls a limit had counted before it, or -1 if the limit
// does not count.
func (s *diffed) usedOf(t *testing.T, limit core.Limit) (used int) {
	limitertest.AwaitDryRuns(t, s.limiter)
	clear(s.left)
	s.call(func() {})
	limitertest.AwaitDryRuns(t, s.limiter)
	left, ok := s.left[limit]
	if !ok {
		return -1
	}
	if limit.Algorithm == core.TokenBucket {
		return limit.Burst - left - 1
	}
	return limit.Max - left - 1
}
