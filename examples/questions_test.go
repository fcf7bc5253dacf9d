package examples_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// operatingPage has the programs that answer an operator's five questions.
const operatingPage = "../core/OPERATING.md"

// Each program of the page has under 30 lines, and answers its question about a service that runs.
func TestFiveQuestions(t *testing.T) {
	dir, programs := t.TempDir(), map[string]string{}
	var packages []string
	for _, snippet := range snippets(t, operatingPage) {
		if !isProgram(snippet) {
			continue
		}
		if lines := strings.Count(snippet, "\n"); lines >= 30 {
			t.Errorf("a program has %d lines:\n%s", lines, snippet)
		}
		name := fmt.Sprint("question", len(packages)+1)
		packages = append(packages, "./snippet/"+name)
		programs["/"+name+"/main.go"] = snippet
	}
	if len(packages) != 5 {
		t.Fatalf("the page has %d programs", len(packages))
	}
	build(t, programs, dir, packages...)
	limits, err := filepath.Abs("quickstart/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(limits, filepath.Join(dir, "limits.yaml")); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	const key = "REFERENCE_KEYS=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rdb := "REDIS_URL=redis://" + server.Addr()
	s, quickstart := start(t, "nethttp", "OPERATOR_TOKEN=secret", key, rdb), start(t, "quickstart", "RULES="+limits, rdb)
	run := func(question int, args ...string) string {
		c := exec.Command(filepath.Join(dir, fmt.Sprint("question", question)), args...)
		c.Dir, c.Env = dir, append(os.Environ(), key)
		output, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("question %d: %v", question, err)
		}
		return string(output)
	}

	var problem struct{ Reference string }
	if err := json.Unmarshal([]byte(s.until("POST /reply", 429).body), &problem); err != nil {
		t.Fatal(err)
	}
	wantIn(t, run(2, problem.Reference), `refused by "POST /reply"`, "limit_exceeded, 0 left of 5/m", "about user 42: false")
	s.ask("POST /operator/ban?rule=api&subject=203.0.113.7&span=1h", "^banned")
	wantIn(t, run(4, server.Addr(), "203.0.113.7"), "unbanned: true <nil>", "still banned: [] <nil>")
	quickstart.until("POST /reply", 429)
	wantIn(t, run(5, server.Addr()), `user "alice": refused by "reply": limit_exceeded`, "limits.yaml:", "5 used, 0 left", "<nil>")
	s.eventually("GET /operator/top?span=10m", "POST /reply  user:alice")
	wantIn(t, run(1, server.Addr()), "POST /reply  user:alice")
	countsRefusals(t, filepath.Join(dir, "question3"))
}

// countsRefusals runs the program that is a service itself.
func countsRefusals(t *testing.T, program string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	c := exec.Command(program, address)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait() // the error is that of the kill
	}()
	s := &service{t: t, address: address, client: &http.Client{Timeout: 10 * time.Second}}
	s.client.Transport = &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := s.dial(t.Context(), "", ""); err == nil {
			_ = conn.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for range 5 {
		s.call("GET /")
	}
	wantIn(t, s.call("GET /refused").body, "3  api  allowed  memory\n", "2  api  limit_exceeded  memory\n")
}
