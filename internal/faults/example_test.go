package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
	server := redistest.Start(t)
	e := startExample(t, server)
	calls := &traffic{t: t, url: e.url}
	calls.run(shortOr(time.Second, 10*time.Second), func() {}) // until it has what it needs
	before := e.rest()
	span := shortOr(3*time.Second, 5*time.Minute)
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
	t.Cleanup(func() {
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

// traffic is the calls that clients made to the example.
type traffic struct {
	t        *testing.T
	url      string
	restarts int
	took     time.Duration
	calls    atomic.Int64
	passed   [3]atomic.Int64 // calls of each kind that were let in
	counted  [3]atomic.Int64 // those of them that were counted
	refused  [3]atomic.Int64 // calls of each kind that were refused
	fresh    atomic.Int64
}

// The kinds of calls whose callers are always the same, with the names of their rules, and their
// limits.
var kinds = [3]struct {
	method, path, client, rule string
	limit                      int
	span                       time.Duration
}{
	{http.MethodGet, "/", "203.0.113.1", "api", 100, time.Second},
	{http.MethodGet, "/fixed", "203.0.113.2", "GET /fixed", 4, 5 * time.Second},
	{http.MethodPost, "/reply", "203.0.113.3", "POST /reply", 5, time.Minute},
}

// run makes 64 clients call as fast as they can for this span, while happens runs.
func (l *traffic) run(span time.Duration, happens func()) {
	l.t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: transport, Timeout: patience}
	defer transport.CloseIdleConnections()
	begin := time.Now()
	var event sync.WaitGroup
	event.Go(happens)
	together(64, func(i int) {
		for n := 0; time.Since(begin) < span && !l.t.Failed(); n++ {
			l.call(client, (i+n)%4)
		}
	})
	event.Wait()
	l.took += time.Since(begin)
}

// call makes a call of a kind, or one by a new client.
func (l *traffic) call(client *http.Client, kind int) {
	method, path, from := http.MethodGet, "/", ""
	if kind < len(kinds) {
		method, path, from = kinds[kind].method, kinds[kind].path, kinds[kind].client
	} else {
		n := l.fresh.Add(1)
		from = fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
	}
	request, err := http.NewRequest(method, l.url+path, nil)
	if err != nil {
		l.t.Error(err)
		return
	}
	request.Header.Set("X-Forwarded-For", from)
	request.Header.Set("Authorization", "Bearer alice-token")
	response, err := client.Do(request)
	if err != nil {
		l.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	l.calls.Add(1)
	limits := response.Header.Values("RateLimit") // without the rules that did not count, because Redis was down
	switch {
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests:
		l.t.Errorf("%s %s: status %d", method, path, response.StatusCode)
	case kind == len(kinds) && response.StatusCode != http.StatusOK:
		l.t.Errorf("a new caller is refused: %s", limits)
	case kind == len(kinds):
	case response.StatusCode != http.StatusOK:
		l.refused[kind].Add(1)
	default:
		l.passed[kind].Add(1)
		if names(limits, kinds[kind].rule) {
			l.counted[kind].Add(1)
		}
	}
}

// names reports whether one of the limits, as the header RateLimit has them, is that of a rule.
func names(limits []string, rule string) bool {
	return slices.ContainsFunc(limits, func(limit string) bool { return strings.HasPrefix(limit, strconv.Quote(rule)+";") })
}

// wantRightAdmissions checks that no more were let in than the limits and the lives of Redis allow, and
// that nobody was refused before a limit was used up. Redis may have counted a call that was let in
// because the reply came too late.
func (l *traffic) wantRightAdmissions() {
	l.t.Helper()
	for i, kind := range kinds {
		spans := int(l.took/kind.span) + 2 // at both ends, one that is not full
		most := kind.limit * (spans + l.restarts)
		passed, counted, refused := int(l.passed[i].Load()), int(l.counted[i].Load()), l.refused[i].Load()
		if counted > most || refused > 0 && passed < kind.limit {
			l.t.Errorf("%s %s: %d let in, %d of them counted, %d refused: want at least %d let in before one is refused, and at most %d counted",
				kind.method, kind.path, passed, counted, refused, kind.limit, most)
		}
	}
}
