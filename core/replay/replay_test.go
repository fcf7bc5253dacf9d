package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

// start is when the calls of the tests begin: at the beginning of a minute.
var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// form is the log_format of the tests.
const form = `$msec $request_time $remote_addr $remote_user $status "$request" $http_x_key $plan`

// call is a line of a log in this form.
type call struct {
	at, took           float64 // seconds after start; at is when it begins
	from, user, target string
	status             int
	key, plan          string
}

// logOf returns a log of calls, in the order in which they end.
func logOf(calls ...call) replay.Log {
	var b strings.Builder
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	for _, c := range calls {
		ended := start.Add(time.Duration((c.at + c.took) * 1e9))
		fmt.Fprintf(&b, "%d.%03d %.3f %s %s %d \"%s HTTP/1.1\" %s %s\n", ended.Unix(), ended.UnixMilli()%1000, c.took, or(c.from, "192.0.2.1"),
			or(c.user, "-"), max(c.status, 1), or(c.target, "GET /"), or(c.key, "-"), or(c.plan, "-"))
	}
	return replay.Log{Name: "test.log", Reader: strings.NewReader(b.String())}
}

// run replays calls by rules, each in a Guard of its own.
func run(t *testing.T, calls []call, rules ...core.Rule) (decisions string, report *replay.Report) {
	t.Helper()
	options := replay.Options{Format: form, Fields: map[string]string{"value:plan": "plan"}}
	for _, r := range rules {
		options.Guards = append(options.Guards, replay.Guard{Rules: []core.Rule{r}})
	}
	options.OnDecision = func(_ time.Time, e core.Event) { decisions += letters[e.Decision.Reason] }
	report, err := replay.Run(t.Context(), options, logOf(calls...))
	if err != nil {
		t.Fatal(err)
	}
	return decisions, report
}

var letters = map[core.Reason]string{
	core.Allowed: "y", core.LimitExceeded: "n", core.Banned: "b", core.DryRunExceeded: "d", core.SoftExceeded: "s", core.CostTooHigh: "c",
}

// every returns calls at these seconds.
func every(of call, seconds ...float64) (calls []call) {
	for _, at := range seconds {
		of.at = at
		calls = append(calls, of)
	}
	return calls
}

// Each kind of rule decides as in a service, by the clock of the log.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		name  string
		rule  core.Rule
		calls []call
		want  string
	}{
		{"fixed window", core.Rule{Limit: core.PerMinute(2).Fixed()}, every(call{}, 0, 30, 59, 60, 61, 62), "yynyyn"},
		{"seconds", core.Rule{Seconds: 10, MaxCount: 1}, every(call{}, 0, 5, 30), "yny"},
		{"bucket", core.Rule{Limit: core.PerSecond(1).Bucket(2)}, every(call{}, 0, 0, 0, 1, 1), "yynyn"},
		{"calendar", core.Rule{Limit: core.PerCalendarDay(1, "UTC")}, every(call{}, 0, 50_000, 51_000), "yny"},
		{"days later", core.Rule{Limit: core.PerHour(1)}, every(call{}, 0, 86_400*40), "yy"},
		{"dry run", core.Rule{Limit: core.PerHour(1), Mode: core.DryRun}, every(call{}, 0, 1), "yd"},
		{"soft", core.Rule{Limit: core.PerHour(1), Mode: core.Soft}, every(call{}, 0, 1), "ys"},
		{"ban", core.Rule{Limit: core.PerMinute(1).Fixed(), Ban: core.Ban{After: 1, For: time.Hour}}, every(call{}, 0, 1, 120, 3700), "ynby"},
		{"failures count", core.Rule{Limit: core.PerHour(1), Count: func(status int) bool { return status == 401 }},
			[]call{{at: 0, status: 200}, {at: 1, status: 401}, {at: 2, status: 200}}, "yyn"},
		{"in flight", core.Rule{Limit: core.InFlight(1)}, []call{{at: 5, took: 1}, {at: 0, took: 10}, {at: 11, took: 1}}, "yny"},
		{"in flight for long", core.Rule{Limit: core.InFlight(1)}, []call{{at: 0, took: 55}, {at: 50, took: 1}, {at: 54, took: 7000}, {at: 7000, took: 1}}, "ynyn"},
		{"a call counts until it ends", core.Rule{Limit: core.PerHour(1), Count: func(status int) bool { return status == 401 }},
			[]call{{at: 5, status: 200}, {at: 0, took: 10, status: 200}, {at: 11, status: 200}}, "yny"},
		{"cost", core.Rule{Limit: core.PerHour(5), Cost: func(q core.Request) int { return len(q.Query("q")) }},
			[]call{{target: "GET /?q=abc"}, {target: "GET /?q=abc"}, {target: "GET /?q=ab"}, {target: "GET /?q=abcdef"}}, "ynyc"},
		{"plan", core.Rule{Limit: core.PerHour(1), Plan: planOf, Plans: map[string]core.Limit{"pro": core.PerHour(2)}},
			[]call{{plan: "pro"}, {plan: "pro"}, {plan: "pro"}, {from: "192.0.2.2"}, {from: "192.0.2.2"}}, "yynyn"},
		{"header", core.Rule{Limit: core.PerHour(1), Key: core.ByHeader("X-Key")}, []call{{key: "a"}, {key: "b"}, {key: "a"}, {}, {}}, "yynyn"},
		{"user", core.Rule{Limit: core.PerHour(1), NeedLogin: true}, []call{{user: "a"}, {}, {user: "a"}, {user: "b"}}, "yny"},
		{"the host of a target", core.Rule{Limit: core.PerHour(1), Key: core.ByHost},
			[]call{{target: "GET http://a.test/"}, {target: "GET http://u@b.test/"}, {target: "GET http://b.test"}, {target: "GET http:///"}, {}}, "yynyn"},
		{"warn", core.Rule{Limit: core.PerHour(1), Warn: []float64{1}}, every(call{}, 0), "y"},
		{"paths and methods", core.Rule{Limit: core.PerHour(1), Methods: []string{"POST"}, Paths: []string{"/a?b/**"}},
			[]call{{target: "POST /a%20b/c"}, {target: "GET /a%20b/c"}, {target: "POST /x"}, {target: "POST http://h/a%20b/d"}}, "yn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.rule.Name = "r"
			if got, report := run(t, test.calls, test.rule); got != test.want || report.Calls != len(test.calls) {
				t.Errorf("got %s, want %s; %d calls", got, test.want, report.Calls)
			}
		})
	}
}

func planOf(q core.Request) (string, error) {
	plan, _ := q.Value("plan").(string)
	return plan, nil
}

// A refused call passes no further Guard. Those that it has passed learn of the refusal, as a middleware
// does of what happens inside.
func TestGuards(t *testing.T) {
	failed := func(status int) bool { return status < 400 }
	outer := core.Rule{Name: "outer", Limit: core.PerHour(2), Count: failed}
	inner := core.Rule{Name: "inner", Limit: core.PerHour(1), Key: core.Global}
	got, report := run(t, []call{{status: 200}, {status: 200}, {status: 200, from: "192.0.2.2"}, {status: 200}}, outer, inner)
	if got != "yyynynyn" {
		t.Errorf("got %s", got)
	}
	if o, i := report.Rules[0], report.Rules[1]; o.Calls != 4 || o.Refused != 0 || o.Subjects != 2 || i.Calls != 4 || i.Refused != 3 || i.Subjects != 1 {
		t.Errorf("%+v", report.Rules)
	}
	options := replay.Options{Format: form, Guards: []replay.Guard{{Rules: []core.Rule{inner}, Methods: []string{"POST"}, Paths: []string{"/login"}}}}
	report, err := replay.Run(t.Context(), options, logOf(call{target: "POST /login"}, call{target: "GET /login"}, call{target: "POST /x"}))
	if err != nil || report.Rules[0].Calls != 1 || report.Calls != 3 {
		t.Errorf("%+v %v", report, err)
	}
}

func TestReport(t *testing.T) {
	calls := every(call{from: "192.0.2.1"}, 0, 1, 2, 70, 71, 72, 73)
	calls = append(calls, every(call{from: "2001:db8::1"}, 74)...)
	calls = append(calls, every(call{from: "192.0.2.3"}, 75, 76)...)
	_, report := run(t, calls, core.Rule{Name: "api", Limit: core.PerMinute(2).Fixed(), Also: []core.Limit{core.PerDay(9)}})
	r := report.Rules[0]
	if report.Calls != 10 || report.Refused != 3 || r.Calls != 10 || r.Refused != 3 || r.Reasons[core.LimitExceeded] != 3 || r.Subjects != 3 || r.Hit != 1 || r.Near != 1 {
		t.Errorf("%+v", report)
	}
	if len(r.Top) != 1 || r.Top[0] != (replay.Subject{Subject: "ip:192.0.2.1", Calls: 7, Refused: 3}) {
		t.Errorf("top %v", r.Top)
	}
	if want := (replay.Minute{Time: start.Add(time.Minute), Calls: 7, Refused: 2}); report.WorstMinute != want || r.WorstMinute != want {
		t.Errorf("worst %v", report.WorstMinute)
	}
	if !report.From.Equal(start) || !report.To.Equal(start.Add(76*time.Second)) || report.ClockSeconds != 0.001 || report.SameTime != 0 {
		t.Errorf("%+v", report)
	}
	text := report.String()
	for _, want := range []string{"10 calls from 2026-11-22 10:00:00 to 2026-11-22 10:01:16 UTC\n3 refused (30 %), at worst 2 of 7 calls in the minute from 2026-11-22 10:01", "  ip:192.0.2.1   3 of 7 calls\n", "api    2/m fixed, 9/24h   10      3 (30 %)   3          1 (33 %)       1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var back replay.Report
	if encoded, err := json.Marshal(report); err != nil || json.Unmarshal(encoded, &back) != nil || back.String() != text {
		t.Errorf("as JSON: %v\n%s", err, encoded)
	}
}

// A call counts once for a rule with several limits, whichever of them does not fit.
func TestSeveralLimits(t *testing.T) {
	for _, mode := range []core.Mode{core.Enforce, core.Soft, core.DryRun} {
		for _, limits := range [][]core.Limit{{core.PerMinute(9), core.PerHour(1)}, {core.PerHour(1), core.PerMinute(9)}, {core.PerHour(1), core.PerDay(1)}} {
			rule := core.Rule{Name: "r", Limit: limits[0], Also: limits[1:], Mode: mode}
			options := replay.Options{Format: form, Guards: []replay.Guard{{Rules: []core.Rule{rule, {Name: "other", Limit: core.PerHour(9)}}}}}
			report, err := replay.Run(t.Context(), options, logOf(every(call{}, 0, 1, 2)...))
			if err != nil {
				t.Fatal(err)
			}
			if r, other := report.Rules[0], report.Rules[1]; r.Calls != 3 || r.Refused != 2 || r.WorstMinute.Refused != 2 || r.Top[0].Calls != 3 || other.Calls != 3 || other.Refused != 0 {
				t.Errorf("%v %v: %+v", mode, limits, report.Rules)
			}
		}
	}
}

func TestChart(t *testing.T) {
	var calls []call
	for i := range 2000 {
		calls = append(calls, call{at: float64(i)})
	}
	_, report := run(t, calls, core.Rule{Name: "r", Limit: core.PerMinute(30).Fixed()})
	passed, refused := 0, 0
	for i := range report.Chart.Passed {
		passed, refused = passed+report.Chart.Passed[i], refused+report.Chart.Refused[i]
	}
	if passed+refused != 2000 || refused != report.Refused || report.Chart.WidthSeconds != 15 || len(report.Chart.Passed) != 134 {
		t.Errorf("%d and %d in %d columns of %v s", passed, refused, len(report.Chart.Passed), report.Chart.WidthSeconds)
	}
	svg := report.Chart.SVG("<calls & refusals>")
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || !strings.Contains(svg, "&lt;calls &amp; refusals&gt;") {
		t.Errorf("%v in %s", err, svg)
	}
}

// A report says what the log lacks for each rule.
func TestMissing(t *testing.T) {
	calls := []call{{user: "a", key: "k"}, {}, {took: 1}}
	_, report := run(t, calls,
		core.Rule{Name: "key", Limit: core.PerHour(9), Key: core.ByHeader("X-Key")},
		core.Rule{Name: "tenant", Limit: core.PerHour(9), Key: core.Join(core.ByHeader("x-tenant"), core.ByUser)},
		core.Rule{Name: "user", Limit: core.PerHour(9), NeedLogin: true},
		core.Rule{Name: "route", Limit: core.PerHour(9), Key: core.ByRoute, Skip: func(q core.Request) bool { return q.Value("probe") == "1" }},
		core.Rule{Name: "slots", Limit: core.InFlight(9)},
		core.Rule{Name: "ip", Limit: core.PerHour(9)},
	)
	got := ""
	for _, r := range report.Rules {
		got += fmt.Sprintf("%s %d%v; ", r.Name, r.Ignored, r.Missing)
	}
	if want := "key 0[{header:X-Key 2}]; tenant 0[{header:X-Tenant 3} {user 2}]; user 2[]; route 0[{route 3} {value:probe 3}]; slots 0[]; ip 0[]; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWrongInput(t *testing.T) {
	line := "1795341601.000 0 192.0.2.1 - 200 \"GET / HTTP/1.1\" - -\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, strings.Repeat(line, 5000))
	_ = w.Close()
	for _, test := range []struct {
		name, text string
		allowed    bool
		want       error
		calls      int
	}{
		{"one in a hundred", strings.Repeat(line, 99) + "x\n", false, nil, 99},
		{"more", strings.Repeat(line, 98) + "x\n", false, replay.ErrBadLines, 98},
		{"more, allowed", strings.Repeat(line, 98) + "x\ny\n", true, nil, 98},
		{"cut off", packed.String()[:packed.Len()-9], false, replay.ErrBadLines, 5000},
		{"cut off, allowed", packed.String()[:packed.Len()-9], true, nil, 5000},
		{"empty", "\n", false, replay.ErrNoCalls, 0},
		{"nothing but other lines", "1795341601.000 0 192.0.2.1 - 400 \"-\" - -\n", false, replay.ErrNoCalls, 0},
	} {
		options := replay.Options{Format: form, AllowBadLines: test.allowed, Guards: []replay.Guard{{Rules: []core.Rule{{Name: "r", Limit: core.PerHour(1)}}}}}
		report, err := replay.Run(t.Context(), options, replay.Log{Name: "l", Reader: strings.NewReader(test.text)})
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || (report == nil) != (test.calls == 0) || report != nil && report.Calls != test.calls {
			t.Errorf("%s: %v, %v", test.name, report, err)
		}
	}
}

// A log that is not in order of time has no report, unless AllowBadLines asks for one.
func TestOrder(t *testing.T) {
	inOrder := make([]call, 600) // ten minutes
	for i := range inOrder {
		inOrder[i].at = float64(i)
	}
	reversed := slices.Clone(inOrder)
	slices.Reverse(reversed)
	shuffled := slices.Clone(inOrder)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	startTimes := slices.Clone(inOrder) // of calls of which one in fifty takes two minutes
	for i := 150; i < len(startTimes); i += 50 {
		startTimes[i].at -= 120
	}
	oneLate := slices.Clone(inOrder)
	oneLate[400].at -= 120
	setBack := slices.Concat(inOrder, inOrder[300:], inOrder[450:])
	for _, test := range []struct {
		name  string
		calls []call
		want  error
	}{
		{"in order", inOrder, nil},
		{"one is late", oneLate, nil},
		{"the clock is set back", setBack, nil},
		{"newest first", reversed, replay.ErrOrder},
		{"newest first, of two minutes", reversed[:120], replay.ErrOrder},
		{"shuffled", shuffled, replay.ErrOrder},
		{"start times without durations", startTimes, replay.ErrOrder},
		{"several days, newest first", slices.Concat(reversed[:50], inOrder[300:], inOrder[200:], inOrder[100:], inOrder), replay.ErrOrder},
	} {
		for _, lax := range []bool{false, true} {
			options := replay.Options{Format: form, AllowBadLines: lax, Guards: []replay.Guard{{Rules: []core.Rule{{Name: "r", Limit: core.PerHour(1)}}}}}
			report, err := replay.Run(t.Context(), options, logOf(test.calls...))
			if lax && (err != nil || report.Calls != len(test.calls)) || !lax && (!errors.Is(err, test.want) || (err == nil) != (test.want == nil) || (report == nil) != (err != nil)) {
				t.Errorf("%s, lax %v: %v", test.name, lax, err)
			}
		}
	}
}

func TestWrongOptions(t *testing.T) {
	right := []replay.Guard{{Rules: []core.Rule{{Name: "r", Limit: core.PerHour(1)}}}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx     context.Context
		options replay.Options
		want    string
	}{
		{t.Context(), replay.Options{}, "there are no rules"},
		{t.Context(), replay.Options{Guards: []replay.Guard{{}}}, "must be at least one"},
		{t.Context(), replay.Options{Guards: []replay.Guard{{Rules: []core.Rule{{Name: "r"}}}}}, "Seconds"},
		{t.Context(), replay.Options{Guards: []replay.Guard{{Rules: []core.Rule{{Limit: core.PerHour(1)}}}}}, "has no Name"},
		{t.Context(), replay.Options{Guards: []replay.Guard{{Rules: right[0].Rules, Paths: []string{"["}}}}, "a guard's Paths"},
		{t.Context(), replay.Options{Guards: right, Suggest: 101}, "suggest is 101"},
		{t.Context(), replay.Options{Guards: right, Suggest: math.NaN()}, "suggest is NaN"},
		{t.Context(), replay.Options{Guards: right, Format: "apache"}, `no format "apache"`},
		{t.Context(), replay.Options{Guards: right, ClientIP: core.ClientIP{TrustedProxies: []string{"x"}}}, "TrustedProxies"},
		{ended, replay.Options{Guards: right, Format: form}, "context canceled"},
	} {
		if _, err := replay.Run(test.ctx, test.options, logOf(call{})); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
