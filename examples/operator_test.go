package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const asOperator = "Authorization: Bearer secret"

// ask makes a call of the operator's, and checks its answer against a regular expression. On a busy
// machine, Redis may not answer in time. Then ask tries again.
func (s *service) ask(call, want string) {
	s.t.Helper()
	got := s.call(call, asOperator)
	for end := time.Now().Add(time.Minute); got.status == 503 && time.Now().Before(end); {
		got = s.call(call, asOperator)
	}
	if got.status != 200 || !regexp.MustCompile(want).MatchString(got.body) {
		s.t.Errorf("%s: status %d, %s, want %s", call, got.status, got.body, want)
	}
}

// until makes calls as alice until one gets a status, and returns its answer. A call that Redis
// does not answer in time passes.
func (s *service) until(call string, status int) (got answer) {
	s.t.Helper()
	for range 20 {
		if got = s.call(call, asAlice); got.status == status {
			return got
		}
	}
	s.t.Fatalf("%s: status %d, want %d, %s", call, got.status, status, got.body)
	return got
}

// An operator's five questions are answered, and an address is banned and unbanned.
func TestOperatorsQuestions(t *testing.T) {
	for where, redis := range map[string]string{"in process": "", "on Redis": "redis://" + redistest.Start(t).Addr()} {
		t.Run(where, func(t *testing.T) {
			t.Parallel() // processes on Redis tell each other of refusals after some seconds
			s := start(t, "nethttp", "OPERATOR_TOKEN=secret", "REFERENCE_KEYS=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "REDIS_URL="+redis)
			var problem struct{ Reference string }
			if err := json.Unmarshal([]byte(s.until("POST /reply", 429).body), &problem); err != nil {
				t.Fatal(err)
			}
			s.ask("GET /operator/why?reference="+url.QueryEscape(problem.Reference), `^refused by "POST /reply" at .*: limit_exceeded, 0 left of 5/m`)
			s.ask("GET /operator/subject?subject=user:alice", `"POST /reply"(.*\n)+.*5 used, 0 left`)
			s.ask("GET /operator/explain?method=POST&path=/reply&user=alice", `refused by "POST /reply": limit_exceeded(.*\n)+.*main\.go:\d+`)
			s.ask("GET /operator/refused", `(?m)^ +1  limit_exceeded +(redis|memory) +POST /reply$`)
			s.eventually("GET /operator/top?span=1m", `(?m)^ +1  POST /reply  user:alice$`)

			s.ask("POST /operator/ban?rule=api&subject=127.0.0.1&span=1h&note=scraper", `^banned: `)
			wantIn(t, s.until("GET /", 429).body, "abnormal-usage-detected")
			s.ask("GET /operator/bans?rule=api", `^api  ip:127\.0\.0\.1  until .*, by hand \(operator: scraper\)\n\n$`)
			s.ask("POST /operator/unban?rule=api&subject=127.0.0.1&note=mistake", `^unbanned: `)
			s.until("GET /", 200)
			s.ask("GET /operator/bans?rule=api", `^\n$`)
			s.ask("GET /operator/audit", `unban  "api"  "ip:127.0.0.1"  by "operator": "mistake"(.*\n)+.*  ban  .*banned for 1h0m0s`)
		})
	}
}

// Nobody without the token sees anything, and without one in the environment there are no such
// routes.
func TestOperatorsRoutesAreGuarded(t *testing.T) {
	open, guarded := start(t, "nethttp"), start(t, "nethttp", "OPERATOR_TOKEN=secret")
	for _, call := range []string{"GET /operator/top", "GET /operator/audit", "POST /operator/unban?rule=api&subject=user:a", "GET /operator/nothing"} {
		if got := open.call(call, asOperator); got.status != 404 {
			t.Errorf("%s without OPERATOR_TOKEN: status %d", call, got.status)
		}
		for _, line := range []string{"Authorization: Bearer secreT", "Authorization: secret", "Cookie: token=secret", asAlice} {
			if got := guarded.call(call, line); got.status != 401 || strings.Contains(got.body, "refused") {
				t.Errorf("%s with %s: status %d, %s", call, line, got.status, got.body)
			}
		}
	}
	for call, want := range map[string]int{
		"GET /operator/nothing": 404, "GET /operator/unban": 405, "GET /operator/top?span=2m": 400, "GET /operator/bans": 400,
		"POST /operator/ban?rule=api&subject=user:a": 400, "GET /operator/why?reference=x": 400,
	} {
		if got := guarded.call(call, asOperator); got.status != want {
			t.Errorf("%s: status %d, want %d, %s", call, got.status, want, got.body)
		}
	}
}

// A page of bans says how to get the next one, whatever bytes its last subject has, and shows a
// terminal none of them.
func TestOperatorsPagesOfBans(t *testing.T) {
	t.Setenv("OPERATOR_TOKEN", "secret")
	limiter := limitertest.New(t, core.Options{})
	for i := range 99 {
		mustBan(t, limiter, fmt.Sprintf("user:%02d", i))
	}
	mustBan(t, limiter, "user:A&b\n\x1b[2J\xff+")
	mustBan(t, limiter, "user:Z")
	routes, after := example.Operator(limiter), ""
	for _, want := range []string{`(?s)^api  user:00 .*\nmore: after=\S+\n\n$`, `^api  user:Z .*\n\n$`} {
		r := httptest.NewRequest("GET", "/operator/bans?rule=api&"+after, nil)
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if body := w.Body.String(); !regexp.MustCompile(want).MatchString(body) || strings.Contains(body, "\x1b") {
			t.Errorf("the page at %q is %q", after, body)
		}
		_, after, _ = strings.Cut(strings.TrimSpace(w.Body.String()), "more: ")
	}
}

func mustBan(t *testing.T, limiter *core.Limiter, subject string) {
	t.Helper()
	if _, err := operate.New(limiter).Ban(t.Context(), "api", subject, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// While Redis is down, the answers say so, with what is known without it.
func TestOperatorWhileRedisIsDown(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	s := start(t, "nethttp", "OPERATOR_TOKEN=secret", "REDIS_URL=redis://"+server.Addr())
	for call, want := range map[string]string{
		"GET /operator/top":                              "the store did not answer",
		"GET /operator/bans?rule=api":                    "the store did not answer",
		"GET /operator/explain?method=POST&path=/reply":  `"api" at main\.go:\d+`,
		"POST /operator/unban?rule=api&subject=user:bob": "the store did not answer",
	} {
		if got := s.call(call, asOperator); got.status != 503 || !regexp.MustCompile(want).MatchString(got.body) {
			t.Errorf("%s: status %d, %s", call, got.status, got.body)
		}
	}
}

// The commands that an example prints for operators are run, and their output is checked.
func TestPrintedOperatorCommands(t *testing.T) {
	wantCurl(t)
	s := start(t, "nethttp", "OPERATOR_TOKEN=secret", "REFERENCE_KEYS=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.until("POST /reply", 429)
	_, commands, _ := strings.Cut(s.about, " asks:\n")
	ask, commands, _ := strings.Cut(strings.TrimSpace(commands), "\n")
	wants := []string{
		"1  POST /reply  user:alice", "5 used, 0 left", `refused by "POST /reply"`, "core: reference", "1  limit_exceeded   memory      POST /reply",
		"banned: true", "ip:203.0.113.7", "unbanned: true", `by "operator": "mistake"`,
	}
	for command := range strings.Lines(commands) {
		output, err := exec.Command("sh", "-c", ask+"\n"+command).CombinedOutput()
		if err != nil || len(wants) == 0 {
			t.Fatalf("%s: %v, %s", command, err, output)
		}
		wantIn(t, string(output), wants[0])
		wants = wants[1:]
	}
	if len(wants) > 0 {
		t.Errorf("no command shows %q", wants)
	}
}
