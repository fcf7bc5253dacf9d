package adaptertest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// wireScenarios are about the replies that a caller gets.
var wireScenarios = []scenario{
	{name: "draft-10 headers", run: draft10Headers},
	{name: "draft-7 headers", run: draft7Headers},
	{name: "X-RateLimit headers", run: xRateLimitHeaders},
	{name: "older headers tell of the limit that binds", run: olderHeadersBind},
	{name: "older headers leave out slots", run: olderHeadersWithoutSlots},
	{name: "no headers", run: noHeaders},
	{name: "several rules are one list", run: severalRules},
	{name: "a refusal says when to retry", run: refusalSaysWhen},
	{name: "a refusal is a problem detail", run: problemDetail, httpOnly: true},
	{name: "a refusal carries its reference", run: refusalReference},
	{name: "the rule's own message", run: ownMessage},
	{name: "the owner's own reply", run: ownReply, httpOnly: true},
	{name: "HEAD counts with GET", run: headCountsWithGet, httpOnly: true},
	{name: "OPTIONS has a counter of its own", run: optionsCountsByItself, httpOnly: true},
}

// served serves one route that lets two calls pass in ten minutes.
func (s *site) served(t *testing.T, change ...func(*core.Options)) {
	t.Helper()
	s.serve(t, App{Limiter: s.limiter(t, change...), Routes: []Route{{
		Path: "/shop/list", Limits: limit(core.Rule{Name: "shop", Seconds: 600, MaxCount: 2}),
	}}})
}

func styled(style core.HeaderStyle) func(*core.Options) {
	return func(o *core.Options) { o.Headers = style }
}

func draft10Headers(t *testing.T, s *site) {
	s.served(t)
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"shop";r=1;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"shop";q=2;w=600`)
	s.want(t, 200, "/shop/list")
	reply = s.want(t, 429, "/shop/list")
	wantEntries(t, reply, `"shop";r=0;t=`)
	_, wait, _ := strings.Cut(reply.Header.Get("Ratelimit"), ";t=")
	if seconds, err := strconv.Atoi(wait); err != nil || seconds < 590 || seconds > 619 {
		t.Errorf("t=%s, want about 600, at most 1/32 more", wait)
	}
}

func draft7Headers(t *testing.T, s *site) {
	s.served(t, styled(core.HeadersDraft7))
	reply := s.want(t, 200, "/shop/list")
	wantHeader(t, reply, "Ratelimit-Policy", "2;w=600")
	wantPrefix(t, reply, "Ratelimit", "limit=2, remaining=1, reset=6")
}

func xRateLimitHeaders(t *testing.T, s *site) {
	s.served(t, styled(core.HeadersXRateLimit))
	reply := s.want(t, 200, "/shop/list")
	wantHeader(t, reply, "X-Ratelimit-Limit", "2")
	wantHeader(t, reply, "X-Ratelimit-Remaining", "1")
	at, err := strconv.ParseInt(reply.Header.Get("X-Ratelimit-Reset"), 10, 64)
	if until := time.Until(time.Unix(at, 0)); err != nil || until < 9*time.Minute || until > 11*time.Minute {
		t.Errorf("X-RateLimit-Reset is in %v, want in 10 minutes", until)
	}
	s.served(t, styled(core.HeadersXRateLimitDelta|core.HeadersDraft10))
	reply = s.want(t, 200, "/shop/list")
	wantPrefix(t, reply, "X-Ratelimit-Reset", "6")
	wantEntries(t, reply, `"shop";r=1;t=`)
}

// olderHeadersBind checks that headers with room for one limit describe the limit that the caller
// reaches first, in whichever of the stacked middlewares it is.
func olderHeadersBind(t *testing.T, s *site) {
	few, many := core.Rule{Name: "few", Seconds: 600, MaxCount: 3}, core.Rule{Name: "many", Seconds: 6000, MaxCount: 100}
	for name, rules := range map[string][2]core.Rule{"outer": {few, many}, "inner": {many, few}} {
		s.serve(t, App{
			Limiter: s.limiter(t, styled(core.HeadersDraft7|core.HeadersXRateLimitDelta)), Use: limit(rules[0]),
			Routes: []Route{{Path: "/shop/list", Limits: limit(rules[1])}},
		})
		for i, status := range []int{200, 200, 200, 429} {
			reply, left := s.want(t, status, "/shop/list"), strconv.Itoa(max(0, 2-i))
			wantOnly(t, reply, "X-Ratelimit-Limit", "3")
			wantOnly(t, reply, "X-Ratelimit-Remaining", left)
			wantOnly(t, reply, "X-Ratelimit-Reset", "6")
			wantOnly(t, reply, "Ratelimit", "limit=3, remaining="+left+", reset=6")
			wantOnly(t, reply, "Ratelimit-Policy", "3;w=600")
			if t.Failed() {
				t.Fatalf("the %s limit binds, call %d: %v", name, i, reply.Header)
			}
		}
	}
}

// olderHeadersWithoutSlots checks that headers with a time leave out slots until a caller has to
// wait for one, because a slot comes back when a call ends, not after a known time.
func olderHeadersWithoutSlots(t *testing.T, s *site) {
	gate := newGate(t)
	slot := limit(core.Rule{Name: "slot", Limit: core.InFlight(1)})
	s.serve(t, App{Limiter: s.limiter(t, styled(core.HeadersDraft7|core.HeadersXRateLimitDelta)), Routes: []Route{
		{Path: "/shop/slot", Limits: slot, Handle: func(h Handling) { gate.hold(); h.Text("done") }},
		{Path: "/shop/quick", Limits: slot},
		{Path: "/shop/both", Limits: append(limit(core.Rule{Name: "many", Seconds: 600, MaxCount: 100}), slot...)},
	}})
	reply := s.want(t, 200, "/shop/quick")
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"} {
		wantHeader(t, reply, name, "")
	}
	reply = s.want(t, 200, "/shop/both")
	wantOnly(t, reply, "Ratelimit", "limit=100, remaining=99, reset=6")
	wantOnly(t, reply, "X-Ratelimit-Remaining", "99")
	call := s.enter(t, gate, "/shop/slot")
	reply = s.want(t, 429, "/shop/both")
	wantOnly(t, reply, "Ratelimit", "limit=1, remaining=0, reset=")
	wantOnly(t, reply, "Ratelimit-Policy", "1;w=30")
	wantOnly(t, reply, "X-Ratelimit-Remaining", "0")
	call.wantEnd(200)
}

func noHeaders(t *testing.T, s *site) {
	s.served(t, styled(core.NoHeaders))
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/list")
	reply := s.want(t, 429, "/shop/list")
	for name := range reply.Header {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			t.Errorf("there is a header %s", name)
		}
	}
	if reply.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
}

func severalRules(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", Limits: limit(
		core.Rule{Name: "minute", Seconds: 60, MaxCount: 5}, core.Rule{Name: "day", Seconds: 86400, MaxCount: 50},
	)}}})
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"minute";r=4;t=`, `"day";r=49;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"minute";q=5;w=60, "day";q=50;w=86400`)
}

func refusalSaysWhen(t *testing.T, s *site) {
	s.served(t)
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/list")
	reply := s.want(t, 429, "/shop/list")
	if seconds, err := strconv.Atoi(reply.Header.Get("Retry-After")); err != nil || seconds < 590 || seconds > 619 {
		t.Errorf("Retry-After is %q, want about 600", reply.Header.Get("Retry-After"))
	}
}

func problemDetail(t *testing.T, s *site) {
	s.served(t)
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/list")
	reply := s.want(t, 429, "/shop/list")
	wantHeader(t, reply, "Content-Type", "application/problem+json")
	wantHeader(t, reply, "Cache-Control", "no-store")
	var problem struct {
		Type, Title, Detail string
		Status              int
		Violated            []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(reply.Body), &problem); err != nil {
		t.Fatalf("%v in %q", err, reply.Body)
	}
	if problem.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" || problem.Status != 429 ||
		problem.Title == "" || problem.Detail == "" || len(problem.Violated) != 1 || problem.Violated[0] != "shop" {
		t.Errorf("the problem is %+v", problem)
	}
}

// refusalReference requires that a refusal's reference reaches the caller, also if the owner replaces
// the body.
func refusalReference(t *testing.T, s *site) {
	for _, reply := range []func(core.Request, core.Refusal) core.Refusal{
		nil,
		func(core.Request, core.Refusal) core.Refusal { return core.Refusal{Body: []byte("no")} },
	} {
		limiter := s.limiter(t, func(o *core.Options) {
			o.ReferenceKeys, o.Reply = [][]byte{[]byte("a key of thirty-two random bytes")}, reply
		})
		s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", Limits: limit(core.Rule{Name: "shop", Seconds: 600, MaxCount: 1})}}})
		if text := s.want(t, 200, "/shop/list").Header.Get("Refusal-Reference"); text != "" {
			t.Errorf("an allowed call has the reference %q", text)
		}
		got, err := operate.New(limiter).ExplainReference(s.want(t, 429, "/shop/list").Header.Get("Refusal-Reference"))
		if err != nil || got.Rule != "shop" || got.Reason != core.LimitExceeded || !got.About("ip:127.0.0.1") {
			t.Errorf("the reference says %v, %v", got, err)
		}
	}
}

func ownMessage(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 1, Message: `Slow down, "friend".`}),
	}}})
	s.want(t, 200, "/shop/list")
	reply := s.want(t, 429, "/shop/list")
	if !strings.Contains(strings.ReplaceAll(reply.Body, `\"`, `"`), `Slow down, "friend".`) {
		t.Errorf("the body is %q", reply.Body)
	}
}

func ownReply(t *testing.T, s *site) {
	s.served(t, func(o *core.Options) {
		o.Reply = func(r core.Request, refusal core.Refusal) core.Refusal {
			refusal.Status, refusal.ContentType = http.StatusServiceUnavailable, "text/plain; charset=utf-8"
			refusal.Body = []byte(r.Method() + " " + refusal.Decision.Rule + " " + refusal.Decision.Key)
			return refusal
		}
	})
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/list")
	reply := s.want(t, 503, "/shop/list")
	if reply.Body != "GET shop ip:127.0.0.1" {
		t.Errorf("the body is %q", reply.Body)
	}
	wantHeader(t, reply, "Content-Type", "text/plain; charset=utf-8")
}

func headCountsWithGet(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 2})},
		{Method: "HEAD", Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 2})},
	}})
	s.want(t, 200, "/shop/list")
	if reply := s.do(t, "HEAD", "/shop/list"); reply.Status != 200 {
		t.Fatalf("HEAD: status %d", reply.Status)
	}
	s.want(t, 429, "/shop/list")
	reply := s.do(t, "HEAD", "/shop/list")
	if reply.Status != 429 || reply.Body != "" || reply.Header.Get("Retry-After") == "" {
		t.Errorf("a refused HEAD got %+v", reply)
	}
}

func optionsCountsByItself(t *testing.T, s *site) {
	rule := core.Rule{Seconds: 600, MaxCount: 1}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/list", Limits: limit(rule)}, {Method: "OPTIONS", Path: "/shop/list", Limits: limit(rule)},
	}})
	s.want(t, 200, "/shop/list")
	for _, status := range []int{200, 429} {
		if reply := s.do(t, "OPTIONS", "/shop/list"); reply.Status != status {
			t.Fatalf("OPTIONS: status %d, want %d", reply.Status, status)
		}
	}
}

// wantEntries checks the entries of RateLimit, in order, whether they are on one line or on
// several.
func wantEntries(t *testing.T, reply Reply, prefixes ...string) {
	t.Helper()
	list := strings.Join(reply.Header.Values("Ratelimit"), ", ")
	entries := strings.Split(list, ", ")
	if len(entries) != len(prefixes) {
		t.Fatalf("RateLimit is %q, want %d entries", list, len(prefixes))
	}
	for i, prefix := range prefixes {
		if !strings.HasPrefix(entries[i], prefix) {
			t.Errorf("entry %d of RateLimit is %q, want %q...", i, entries[i], prefix)
		}
	}
}

func wantHeader(t *testing.T, reply Reply, name, value string) {
	t.Helper()
	if got := strings.Join(reply.Header.Values(name), ", "); got != value {
		t.Errorf("%s is %q, want %q", name, got, value)
	}
}

func wantPrefix(t *testing.T, reply Reply, name, prefix string) {
	t.Helper()
	if got := reply.Header.Get(name); !strings.HasPrefix(got, prefix) {
		t.Errorf("%s is %q, want %q...", name, got, prefix)
	}
}

// wantOnly checks that a header has one line, which starts with prefix.
func wantOnly(t *testing.T, reply Reply, name, prefix string) {
	t.Helper()
	if lines := reply.Header.Values(name); len(lines) != 1 || !strings.HasPrefix(lines[0], prefix) {
		t.Errorf("%s is %q, want the one line %q...", name, lines, prefix)
	}
}
