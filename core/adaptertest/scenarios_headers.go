package adaptertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// headerScenarios are about the headers that tell callers their limits.
var headerScenarios = []scenario{
	{name: "draft-10 headers", run: draft10Headers},
	{name: "draft-11 headers", run: draft11Headers},
	{name: "draft-7 headers", run: draft7Headers},
	{name: "X-RateLimit headers", run: xRateLimitHeaders},
	{name: "older headers tell of the limit that binds", run: olderHeadersBind},
	{name: "older headers leave out slots", run: olderHeadersWithoutSlots},
	{name: "no headers", run: noHeaders},
	{name: "several rules are one list", run: severalRules},
}

func draft10Headers(t *testing.T, s *site) {
	s.served(t)
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"shop";r=1;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"shop";q=2;w=600`)
	s.want(t, 200, "/shop/list")
	wantWait(t, s.want(t, 429, "/shop/list"))
}

// draft11Headers checks the form in which t is left out if it is not known when a permit comes back.
func draft11Headers(t *testing.T, s *site) {
	s.served(t, styled(core.HeadersDraft11))
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"shop";r=1;t=6`)
	wantHeader(t, reply, "Ratelimit-Policy", `"shop";q=2;w=600`)
	wantHeader(t, s.want(t, 200, "/shop/list"), "Ratelimit", `"shop";r=0`)
	wantWait(t, s.want(t, 429, "/shop/list"))
}

// wantWait checks the RateLimit of a refusal.
func wantWait(t *testing.T, reply Reply) {
	t.Helper()
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
			Routes: []Route{{Path: "/shop/list", limits: limit(rules[1])}},
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
		{Path: "/shop/slot", limits: slot, Handle: func(h Handling) { gate.hold(); h.Text("done") }},
		{Path: "/shop/quick", limits: slot},
		{Path: "/shop/both", limits: append(limit(core.Rule{Name: "many", Seconds: 600, MaxCount: 100}), slot...)},
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
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(
		core.Rule{Name: "minute", Seconds: 60, MaxCount: 5}, core.Rule{Name: "day", Seconds: 86400, MaxCount: 50},
	)}}})
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"minute";r=4;t=`, `"day";r=49;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"minute";q=5;w=60, "day";q=50;w=86400`)
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

// wantOnly checks that a header has one line, which starts with prefix.
func wantOnly(t *testing.T, reply Reply, name, prefix string) {
	t.Helper()
	if lines := reply.Header.Values(name); len(lines) != 1 || !strings.HasPrefix(lines[0], prefix) {
		t.Errorf("%s is %q, want the one line %q...", name, lines, prefix)
	}
}
