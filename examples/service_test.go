package examples_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// httpExamples share one contract.
var (
	httpExamples = []string{"quickstart", "gin", "echo", "echo5", "fiber", "fiber3", "nethttp", "chi"}
	allExamples  = append(httpExamples, "grpc", "connect")
	// ownWays read the environment and serve in their own ways. The others share package example with nethttp.
	ownWays = []string{"quickstart", "nethttp"}
)

// programs is where TestMain builds the examples.
var programs string

func TestMain(m *testing.M) {
	leakcheck.Main(built{m})
}

// built builds the examples before it runs the tests.
type built struct{ *testing.M }

// Run builds the examples and runs the tests.
func (b built) Run() (code int) {
	dir, err := os.MkdirTemp("", "accesslimit-examples")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs = dir
	var ofRoot []string
	for _, name := range append(allExamples, "outgoing", "llmgateway") {
		if _, err := os.Stat(name + "/go.mod"); err != nil {
			ofRoot = append(ofRoot, "./examples/"+name)
		} else if goBuild(name, dir, ".") != nil {
			return 1
		}
	}
	if goBuild("..", dir, ofRoot...) != nil { // where a -modfile in GOFLAGS is meant from
		return 1
	}
	return b.M.Run()
}

// goBuild builds programs of the module in a folder. Without symbols it takes half as long.
func goBuild(module, output string, packages ...string) error {
	build := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", output}, packages...)...)
	build.Dir, build.Stdout, build.Stderr = module, os.Stderr, os.Stderr
	return build.Run()
}

// command is an example that is ready to start, on a free port unless the environment given says
// otherwise.
func command(name string, env ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(programs, name))
	c.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "REDIS_URL=", "REDIS_TIMEOUT=1m", "TRUSTED_PROXIES=", "CLIENT_IP_HEADER=", "RULES=", "OPERATOR_TOKEN=", "REFERENCE_KEYS=", "CONSOLE_ADDR=", "DRAIN=0s")
	c.Env = append(c.Env, env...)
	return c
}

// service is a running example.
type service struct {
	t       *testing.T
	process *exec.Cmd
	ended   bool
	address string // host:port, or the path of a unix socket
	about   string // what it printed at its start
	logged  *logtest.Log
	client  *http.Client
}

// awaitLog waits until an example has logged a text.
func (s *service) awaitLog(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(strings.ReplaceAll(s.logged.String(), `\"`, `"`), text) {
			return
		}
	}
	s.t.Fatalf("has not logged %s, but %s", text, s.logged)
}

// start starts an example and returns when it listens. The test ends it by SIGTERM, and fails if it
// does not end in order.
func start(t *testing.T, name string, env ...string) *service {
	t.Helper()
	c := command(name, env...)
	logged := new(logtest.Log)
	c.Stderr = logged
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, process: c, logged: logged, client: &http.Client{Timeout: time.Minute}}
	bounded.Cleanup(t, s.end)
	s.readAbout(c, stdout)
	s.client.Transport = &http.Transport{DialContext: s.dial}
	return s
}

func (s *service) signal(which os.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(which); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends the process at once, without a shutdown.
func (s *service) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	_ = bounded.Wait(s.process) // the error is that of the kill
	s.ended = true
}

// end ends the process in order, unless it has ended before.
func (s *service) end() {
	if s.ended {
		return
	}
	s.ended = true
	defer killAfterPatience(s.process).Stop()
	s.client.CloseIdleConnections() // a server waits five seconds for one that was never used
	_ = s.process.Process.Signal(syscall.SIGTERM)
	if err := s.process.Wait(); err != nil {
		s.t.Errorf("%s did not end in order: %v\n%s", s.process.Path, err, s.logged)
	}
}

// killAfterPatience ends a process that hangs, and with it every wait for it.
func killAfterPatience(c *exec.Cmd) *time.Timer {
	return time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
}

var listening = regexp.MustCompile(`^listening on (\S+)\n`)

// readAbout waits for what an example prints, in a single write, once it listens.
func (s *service) readAbout(c *exec.Cmd, stdout io.Reader) {
	s.t.Helper()
	defer killAfterPatience(c).Stop()
	text := make([]byte, 4096)
	n, _ := stdout.Read(text)
	s.about = string(text[:n])
	match := listening.FindStringSubmatch(s.about)
	if match == nil {
		s.t.Fatalf("does not say where it listens: %q", s.about)
	}
	s.address = match[1]
}

func (s *service) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(s.address, "/") {
		network = "unix"
	}
	return new(net.Dialer).DialContext(ctx, network, s.address)
}

// answer is the response to a call.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool // the connection ends with it
}

// call makes a call, such as "POST /reply", with header lines, such as "Cookie:
// session=alice-session".
func (s *service) call(what string, lines ...string) answer {
	s.t.Helper()
	method, path, _ := strings.Cut(what, " ")
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://example"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	return answer{response.StatusCode, response.Header, string(body), response.Close}
}

// wantFixed calls GET /fixed, which lets four calls through.
func (s *service) wantFixed(status, times int, lines ...string) {
	s.t.Helper()
	for i := range times {
		if got := s.call("GET /fixed", lines...); got.status != status {
			s.t.Fatalf("GET /fixed %v, call %d: status %d, want %d", lines, i+1, got.status, status)
		}
	}
}

// eventually asks as an operator until the answer matches a regular expression.
func (s *service) eventually(call, want string) {
	s.t.Helper()
	var got answer
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = s.call(call, asOperator); regexp.MustCompile(want).MatchString(got.body) {
			return
		}
	}
	s.t.Fatalf("%s: status %d, %s, want %s", call, got.status, got.body, want)
}

// waitUntilCounted waits for the first call that the store answers again.
func (s *service) waitUntilCounted() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.call("GET /").header.Get("RateLimit") != "" {
			return
		}
	}
	s.t.Fatal("is not counted again")
}
