package examples_test

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBadEnvironment(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	for _, bad := range []struct{ name, env, says string }{
		{"Redis", "REDIS_URL=localhost:6379", "REDIS_URL: "},
		{"timeout", "REDIS_TIMEOUT=100", "REDIS_TIMEOUT: "},
		{"proxies", "TRUSTED_PROXIES=127.0.0.1,300.0.0.0/8", `TrustedProxies = "300.0.0.0/8"`},
		{"trust in everybody", "TRUSTED_PROXIES=0.0.0.0/0", `TrustedProxies = "0.0.0.0/0"`},
		{"a header that nobody may write", "CLIENT_IP_HEADER=X-Real-IP", `Header = "X-Real-IP"`},
		{"no duration", "DRAIN=soon", "DRAIN: "},
		{"port taken", "ADDR=" + taken.Addr().String(), "address already in use"},
	} {
		for _, name := range ownWays {
			t.Run(bad.name+"/"+name, func(t *testing.T) {
				c := command(name, bad.env)
				defer killAfterPatience(c).Stop()
				output, err := c.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 1 {
					t.Errorf("ended with %v, want exit status 1", err)
				}
				if !strings.Contains(string(output), bad.says) {
					t.Errorf("says %q, want %q in it", output, bad.says)
				}
			})
		}
	}
}

// A socket that a killed process left behind is replaced. A socket on which a process listens is
// not.
func TestSocketOfAKilledProcess(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			killed := start(t, name, "ADDR=unix:"+path)
			killed.kill()
			start(t, name, "ADDR=unix:"+path)
			second := command(name, "ADDR=unix:"+path)
			defer killAfterPatience(second).Stop()
			output, err := second.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "address already in use") {
				t.Errorf("a second one beside it: %v, %s", err, output)
			}
			if conn, err := net.Dial("unix", path); err != nil {
				t.Errorf("the first does not listen any more: %v", err)
			} else {
				_ = conn.Close()
			}
		})
	}
}

// While a service ends, it answers calls, each as the last of its connection, and fails health
// checks.
func TestDrain(t *testing.T) {
	for _, name := range append(ownWays, "fiber", "fiber3") { // the last two close connections by themselves
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			s := start(t, name, "DRAIN=30s")
			if got := s.call("GET /"); got.close {
				t.Error("a connection is closed before the service is to end")
			}
			s.signal(syscall.SIGTERM)
			for deadline := time.Now().Add(time.Minute); s.call("GET /healthz").status != 503; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("health checks do not fail")
				}
			}
			if got := s.call("GET /"); got.status != 200 || !got.close { // over a new one, until the time is over
				t.Errorf("status %d, closed: %v", got.status, got.close)
			}
			s.kill()
		})
	}
}

func wantCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("curl is missing: make curl installs it")
	}
}

// The commands that the HTTP examples print are run, and their output is checked.
func TestPrintedCommands(t *testing.T) {
	wantCurl(t)
	for _, name := range httpExamples {
		t.Run(name, func(t *testing.T) {
			s := start(t, name)
			shows := s.runPrinted("curl ")
			wantIn(t, shows[0], "200 OK", `Ratelimit: "api";r=99;t=`, "hello")
			wantIn(t, shows[1], "200\n200\n200\n429\n")
			wantIn(t, shows[2], "alice has replied", "429 Too Many Requests", "Retry-After: ")
			if strings.Count(shows[2], "200 OK") != 5 {
				t.Errorf("want 5 calls that pass in %s", shows[2])
			}
		})
	}
}

// runPrinted runs the three printed commands, which hold the text, and returns what they print.
func (s *service) runPrinted(text string) (outputs []string) {
	s.t.Helper()
	forCallers, _, _ := strings.Cut(s.about, "With OPERATOR_TOKEN")
	for line := range strings.Lines(forCallers) {
		if !strings.Contains(line, text) {
			continue
		}
		output, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			s.t.Errorf("%s: %v: %s", line, err, output)
		}
		outputs = append(outputs, string(output))
	}
	if len(outputs) != 3 {
		s.t.Fatalf("prints %d commands to try, want 3:\n%s", len(outputs), s.about)
	}
	return outputs
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in %s", part, text)
		}
	}
}
