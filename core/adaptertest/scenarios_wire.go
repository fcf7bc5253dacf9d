package adaptertest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// wireScenarios are about the replies that a caller gets.
var wireScenarios = []scenario{
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
		Path: "/shop/list", limits: limit(core.Rule{Name: "shop", Seconds: 600, MaxCount: 2}),
	}}})
}

func styled(style core.HeaderStyle) func(*core.Options) {
	return func(o *core.Options) { o.Headers = style }
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
		s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Name: "shop", Seconds: 600, MaxCount: 1})}}})
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
		Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 1, Message: `Slow down, "friend".`}),
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
		{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 2})},
		{Method: "HEAD", Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 2})},
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
		{Path: "/shop/list", limits: limit(rule)}, {Method: "OPTIONS", Path: "/shop/list", limits: limit(rule)},
	}})
	s.want(t, 200, "/shop/list")
	for _, status := range []int{200, 429} {
		if reply := s.do(t, "OPTIONS", "/shop/list"); reply.Status != status {
			t.Fatalf("OPTIONS: status %d, want %d", reply.Status, status)
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
