package core_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// refused returns the refusal of a limiter whose store returns this wait, with its headers set.
func refused(t *testing.T, options core.Options, wait time.Duration, rules ...core.Rule) (*core.Refusal, http.Header) {
	t.Helper()
	limiter := newLimiter(t, options)
	verdict := algorithm.Verdict{RetryAfter: wait.Microseconds(), ResetAfter: wait.Microseconds()}
	core.UseAnswers(limiter, slices.Repeat([]algorithm.Verdict{verdict}, len(rules))...)
	v := newView("GET", "/")
	answer := wantStatus(t, newGuard(t, limiter, rules...), v, 429)
	answer.Refusal.SetHeader(v.Response)
	return answer.Refusal, v.Response
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Microsecond: "1", 999_999 * time.Microsecond: "1", time.Second: "1", time.Second + time.Microsecond: "2",
		90*time.Second - 1: "90", 366 * 24 * time.Hour: "31622400",
	} {
		for _, style := range []core.HeaderStyle{core.HeadersDraft10, core.NoHeaders} {
			refusal, header := refused(t, core.Options{Headers: style}, wait, core.Rule{Name: "n", Seconds: 60})
			if got := header.Get("Retry-After"); got != want {
				t.Errorf("%v: Retry-After %q, want %q", wait, got, want)
			}
			if refusal.RetryAfter != wait.Truncate(time.Microsecond) {
				t.Errorf("%v: RetryAfter %v, %q", wait, refusal.RetryAfter, refusal.Message)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	const types = "https://iana.org/assignments/http-problem-types#"
	failing := func(core.Request) (string, error) { return "", errVerify }
	used := newLimiter(t, core.Options{Identify: whoSays})
	charge(t, used, "api", "ip:192.0.2.1", core.PerHour(5), 5)
	api := core.Rule{Name: "api", Seconds: 3600}
	for _, test := range []struct {
		name    string
		limiter *core.Limiter
		rule    core.Rule
		status  int
		problem string
		headers string // besides Content-Type and Cache-Control
	}{
		{"over the limit", used, api, 429, types + "quota-exceeded", "Retry-After"},
		{"nobody", used, core.Rule{Name: "n", Seconds: 1, NeedLogin: true}, 401, "about:blank", "Www-Authenticate"},
		{"whom to count is unknown", used, core.Rule{Name: "n", Seconds: 1, Key: failing}, 503, types + "temporary-reduced-capacity", "Retry-After"},
		{"store down", newLimiter(t, deadRedis(t)), closed, 503, types + "temporary-reduced-capacity", "Retry-After"},
		{"too dear", used, core.Rule{Name: "n", Seconds: 1, Cost: cost(9)}, 400, "about:blank", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal, header := checkRule(test.limiter, newView("GET", "/"), test.rule, "").Refusal, http.Header{}
			refusal.SetHeader(header)
			var p struct {
				Type, Title, Detail string
				Status              int
			}
			if err := json.Unmarshal(refusal.Body, &p); err != nil {
				t.Fatal(err)
			}
			if p.Type != test.problem || p.Status != test.status || p.Title != http.StatusText(test.status) || p.Detail == "" || p.Detail != refusal.Message {
				t.Errorf("%s", refusal.Body)
			}
			if header.Get("Content-Type") != "application/problem+json" || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%v", header)
			}
			header.Del("Content-Type")
			header.Del("Cache-Control")
			if further := slices.Collect(maps.Keys(header)); strings.Join(further, " ") != test.headers || refusal.Status != test.status {
				t.Errorf("status %d, %v", refusal.Status, header)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	words := core.Rule{Name: "words", Seconds: 60, Message: `Slow down, "friend" <3`}
	refusal, _ := refused(t, core.Options{}, 3*time.Second, words)
	if refusal.Message != words.Message || !strings.Contains(string(refusal.Body), `Slow down, \"friend\"`) {
		t.Errorf("%q, %s", refusal.Message, refusal.Body)
	}
	// Of two limits that bind alike, the first determines the Message. Other refusals keep the
	// default.
	refusal, _ = refused(t, core.Options{}, 3*time.Second, core.Rule{Name: "plain", Seconds: 60}, words)
	if refusal.Message == words.Message || !slices.Equal(refusal.Violated, []string{"plain", "words"}) {
		t.Errorf("%q, %q", refusal.Message, refusal.Violated)
	}
	words.NeedLogin = true
	guard := newGuard(t, newLimiter(t, core.Options{Identify: whoSays}), words)
	if answer := wantStatus(t, guard, newView("GET", "/"), 401); answer.Refusal.Message == words.Message {
		t.Error("a caller who must log in gets the message about the limit")
	}
}

func TestReply(t *testing.T) {
	rule := core.Rule{Name: "n", Seconds: 60}
	for status, want := range map[int]int{420: 420, 200: 200, 599: 599, 42: 429, 0: 429, -1: 429, 199: 429, 600: 429} {
		limiter := newLimiter(t, core.Options{Identify: whoSays, Reply: func(r core.Request, ours core.Refusal) core.Refusal {
			user, _ := r.User()
			return core.Refusal{Status: status, ContentType: "text/plain", Body: []byte(user + " at " + r.Path()), RetryAfter: ours.RetryAfter}
		}})
		core.UseAnswers(limiter, algorithm.Verdict{RetryAfter: 5_000_000})
		v := newView("GET", "/x").As("alice")
		answer := newGuard(t, limiter, rule).Check(v)
		answer.Refusal.SetHeader(v.Response)
		if r := answer.Refusal; r.Status != want || string(r.Body) != "alice at /x" {
			t.Errorf("status %d became %d, body %q", status, r.Status, r.Body)
		}
		if v.Response.Get("Content-Type") != "text/plain" || v.Response.Get("Retry-After") != "5" {
			t.Errorf("%v", v.Response)
		}
	}
}

// The body is the JSON that encoding/json makes of the problem, whatever rules and messages
// contain.
func TestProblemIsJSON(t *testing.T) {
	type problem struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Detail   string   `json:"detail"`
		Violated []string `json:"violated-policies,omitempty"`
	}
	limiter := newLimiter(t, core.Options{})
	names := rapid.StringMatching(`[ -~]{1,40}`)
	words := rapid.OneOf(rapid.String(), names, rapid.Just("<&>\u2028\"\\\x7f"))
	rapid.Check(t, func(t *rapid.T) {
		rule := core.Rule{Name: names.Draw(t, "name"), Limit: core.Limit{Max: 1, Window: 24 * time.Hour}, Message: words.Draw(t, "message")}
		rule.Also = []core.Limit{{Max: 1, Window: time.Duration(rapid.IntRange(1, 366).Draw(t, "hours")+24) * time.Hour}}
		check, err := limiter.Check(rule)
		if err != nil {
			return // the name stands for another limit already
		}
		check.Allow(newView("GET", "/x"), "")
		refusal := check.Allow(newView("GET", "/x"), "").Refusal
		want := problem{"about:blank", http.StatusText(refusal.Status), refusal.Status, refusal.Message, refusal.Violated}
		if refusal.Decision.Reason == core.LimitExceeded {
			want.Type = "https://iana.org/assignments/http-problem-types#quota-exceeded"
			if len(want.Violated) != 2 || rule.Message != "" && want.Detail != rule.Message {
				t.Errorf("%+v of %+v", want, rule)
			}
		}
		if text, _ := json.Marshal(want); string(text) != string(refusal.Body) {
			t.Errorf("%s\nwant %s", refusal.Body, text)
		}
	})
}

// A caller reads the wait in the units that people use, and never one that is too short.
func TestMessagesNameTheWait(t *testing.T) {
	const day = 24 * time.Hour
	for wait, want := range map[time.Duration]string{
		time.Microsecond: "1 s", 12 * time.Second: "12 s", 59 * time.Second: "59 s", 59*time.Second + 1000: "1 min", time.Minute: "1 min",
		90 * time.Second: "1 min 30 s", time.Hour - time.Second: "59 min 59 s", time.Hour: "1 h", time.Hour + time.Second: "1 h 1 min",
		69_126 * time.Second: "19 h 13 min", day - time.Minute: "23 h 59 min", day - time.Second: "1 day", day: "1 day",
		day + time.Second: "1 day 1 h", 2*day - time.Hour: "1 day 23 h", 2*day - time.Second: "2 days", 51 * time.Hour: "2 days 3 h", 366 * day: "366 days",
	} {
		rule := core.Rule{Name: "n", Seconds: 60, MaxCount: 5}
		refusal, _ := refused(t, core.Options{}, wait, rule)
		if want := "Rate limit of 5 per minute exceeded. Try again in " + want + "."; refusal.Message != want || !strings.Contains(string(refusal.Body), want) {
			t.Errorf("%v: %s, want %s", wait, refusal.Body, want)
		}
	}
}

// Permits that are left, but too few for the call, are not said to be exceeded.
func TestMessageOfACallThatCostsMoreThanIsLeft(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerMinute(5).Fixed(), Cost: cost(3)})
	wantStatus(t, guard, newView("GET", "/"), 200)
	want := "Rate limit of 5 per minute leaves too little for this call. Try again in 1 min."
	if got := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A caller reads the limit in words.
func TestMessagesNameTheLimit(t *testing.T) {
	for want, limit := range map[string]core.Limit{
		"5 per second": core.PerSecond(5), "5 per minute": core.PerMinute(5), "5 per hour": core.PerHour(5), "5 per day": core.PerDay(5),
		"5 per 10 seconds": {Max: 5, Window: 10 * time.Second}, "5 per 90 minutes": {Max: 5, Window: 90 * time.Minute},
		"5 per 36 hours": {Max: 5, Window: 36 * time.Hour}, "5 per 250ms": {Max: 5, Window: 250 * time.Millisecond},
		"5 per 1.5s": {Max: 5, Window: 1500 * time.Millisecond}, "5 per calendar month": core.PerCalendarMonth(5, "UTC"),
		"5 per minute, at most 9 at once": core.PerMinute(5).Bucket(9),
	} {
		rule := core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: limit.Calendar, Window: limit.Window, Algorithm: limit.Algorithm, Burst: limit.Burst}}
		refusal, _ := refused(t, core.Options{}, time.Second, rule)
		if want := "Rate limit of " + want + " exceeded. Try again in 1 s."; refusal.Message != want {
			t.Errorf("%q, want %q", refusal.Message, want)
		}
	}
	for most, want := range map[int]string{1: "Limit of 1 call at once reached.", 3: "Limit of 3 calls at once reached."} {
		refusal, _ := refused(t, core.Options{}, time.Second, core.Rule{Name: "n", Limit: core.InFlight(most)})
		if want += " Try again when another call has ended, or in 1 s."; refusal.Message != want {
			t.Errorf("%q, want %q", refusal.Message, want)
		}
	}
}
