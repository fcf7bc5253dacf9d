package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const exampleFault = "5 minutes of load on an example whose Redis restarts twice"

// debug is added to the example's package, so that the test can ask the process what it holds.
const debug = `package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() {
	listener, err := net.Listen("unix", os.Getenv("DEBUG"))
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, nil)
}
`

// A service under full load whose Redis restarts admits no more than its limits allow, and
// afterwards holds as much as before.
func TestExampleUnderLoad(t *testing.T) {
	if !long() { // what it holds is known after minutes
		return
	}
	server := redistest.Start(t)
	e := startExample(t, server)
	calls := &traffic{t: t, url: e.url}
	calls.run(10*time.Second, func() {}) // until it has what it needs
	before := e.rest()
	const span = 5 * time.Minute
	calls.run(span, func() {
		for range 2 {
			time.Sleep(span / 4)
			server.Kill()
			time.Sleep(300 * time.Millisecond)
			server.Restart()
			calls.restarts++
		}
	})
	var after holdings
	soon(t, "no more goroutines than before", func() bool {
		after = e.rest()
		return after.goroutines <= before.goroutines
	})
	calls.wantRightAdmissions()
	// go-redis keeps ten connections for each processor.
	if after.connections > 10*runtime.GOMAXPROCS(0) || after.heap > before.heap+2<<20 {
		t.Errorf("at rest before: %+v, after: %+v", before, after)
	}
	report(t, exampleFault, "%d calls, %.0f a second; at rest before and after: "+
		"%d and %d goroutines, %.1f and %.1f MB of heap, %d and %d connections to Redis",
		calls.calls.Load(), float64(calls.calls.Load())/calls.took.Seconds(), before.goroutines, after.goroutines,
		float64(before.heap)/1e6, float64(after.heap)/1e6, before.connections, after.connections)
}

// example is one of the examples as a process.
type example struct {
	t     *testing.T
	url   string
	debug *http.Client
	redis *redis.Client
}

// buildExample builds the example for net/http in a directory, together with debug.
func buildExample(t *testing.T, dir string) (program string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(root, "examples", "nethttp", "debug.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{beside: filepath.Join(dir, "debug.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"debug.go": debug, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "nethttp")
	build := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./examples/nethttp")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// startExample starts the example with a server, and ends it in order when the test ends.
func startExample(t *testing.T, server *redistest.Server) *example {
	t.Helper()
	dir := t.TempDir()
	socket, c := filepath.Join(dir, "debug.socket"), exec.Command(buildExample(t, dir))
	c.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "REDIS_URL=redis://"+server.Addr(), "TRUSTED_PROXIES=127.0.0.1", "DRAIN=0s", "DEBUG="+socket)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		defer time.AfterFunc(patience, func() { _ = c.Process.Kill() }).Stop()
		if err := c.Wait(); err != nil {
			t.Errorf("the example did not end in order: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	addr, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("%q, %v", line, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &example{
		t: t, url: "http://" + addr, redis: server.Client(t, func(o *redis.Options) { o.PoolSize = 1 }),
		debug: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: patience},
	}
}

// holdings are the resources that a process holds.
type holdings struct {
	goroutines, heap int
	connections      int // to Redis
}

// rest waits until no call is being served, and returns what the process holds then.
func (e *example) rest() (h holdings) {
	e.t.Helper()
	busy := regexp.MustCompile(`net/http\.\(\*conn\)\.serve`)
	soon(e.t, "the example is at rest", func() bool {
		return len(busy.FindAllString(e.ask("/debug/pprof/goroutine?debug=2"), -1)) == 1 // the one that answers this
	})
	h.goroutines = e.number("/debug/pprof/goroutine?debug=1", `goroutine profile: total (\d+)`)
	h.heap = e.number("/debug/pprof/heap?gc=1&debug=1", `# HeapAlloc = (\d+)`)
	list, err := e.redis.ClientList(context.Background()).Result()
	if err != nil {
		e.t.Fatal(err)
	}
	h.connections = strings.Count(list, "\n") - 1
	return h
}

// ask asks the process what it holds.
func (e *example) ask(what string) string {
	e.t.Helper()
	response, err := e.debug.Get("http://example" + what)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(text)
}

// number returns one number from an answer of the process.
func (e *example) number(what, pattern string) int {
	e.t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(e.ask(what))
	if match == nil {
		e.t.Fatalf("no %s in what the example says", pattern)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}
