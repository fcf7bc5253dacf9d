// Package redistest starts real Redis servers for tests: one server, a cluster, a ring, or a master
// watched by Sentinels. Each belongs to one test, which can stop, kill and restart it.
package redistest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// patience bounds each wait for a server. It is only ever used up by one that is broken: a healthy one is there in some 20 ms.
	patience = 10 * time.Second
	// attempts is how often another port is tried when somebody else takes the one that was free a moment ago.
	attempts = 5
)

// Server is a real redis-server of this test alone, on a loopback port, empty at first, that can be broken on purpose. It is gone
// when the test ends, and on Linux also when the test binary is killed.
//
// Its methods may be called from any goroutine, but Stop, Continue, Kill and Restart only one at a time. One that cannot do its
// work fails the test that started the server, and ends the calling goroutine as t.FailNow does.
type Server struct {
	t       testing.TB
	port    int
	config  string // the path of a configuration file, for a Sentinel, which keeps what it knows there; otherwise none
	args    []string
	process *process
}

// program returns the program that is started as a server.
func program() string { return cmp.Or(os.Getenv("ACCESSLIMIT_REDIS_SERVER"), "redis-server") }

// Start starts a redis-server and returns when it answers. It keeps nothing on disk, except in a temporary directory that
// the test removes. The args come last on its command line, such as "--maxmemory", "2mb", and so win over the ones set here.
//
// The environment variable ACCESSLIMIT_REDIS_SERVER names another program to start, by its absolute path: a redis-server of
// another version, or a valkey-server.
//
// The test fails, and is never skipped, when the program is missing: what it would have shown is not known then.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath(program()); err != nil {
		t.Fatalf(`redistest: the program %s is missing; "make redis" in the accesslimit repository installs redis-server`, program())
	}
	r := newRedis(t, args)
	r.start(func() int { return freePort(t) })
	return r
}

// newRedis prepares a server without a port, and has the test end whatever will run by then.
func newRedis(t testing.TB, args []string) *Server {
	own := []string{"--bind", loopback, "--save", "", "--appendonly", "no", "--dir", t.TempDir()}
	r := &Server{t: t, args: append(own, args...)}
	t.Cleanup(func() {
		if r.process != nil {
			r.Kill()
		}
	})
	return r
}

// start tries the ports that next names until the server runs on one of them.
func (r *Server) start(next func() int) {
	r.t.Helper()
	var err error
	for range attempts {
		r.port = next()
		if err = r.launch(); err == nil {
			return
		}
	}
	r.t.Fatalf("redistest: redis-server does not start: %v", err)
}

// launch runs the server on its port. The error holds what the server printed before it gave up.
func (r *Server) launch() error {
	args := append([]string{"--port", strconv.Itoa(r.port)}, r.args...)
	if r.config != "" {
		args = append([]string{r.config}, args...)
	}
	p, err := launch(program(), args...)
	if err != nil {
		return err
	}
	r.process = p
	answered := false
	WaitUntil(func() bool {
		answered = r.answers()
		return answered || p.hasEnded()
	}, patience)
	if answered {
		return nil
	}
	p.kill()
	return fmt.Errorf("on port %d: %s", r.port, strings.TrimSpace(p.output.String()))
}

// answers tells whether this very process answers. To be answered is not enough: when two test binaries pick the same port, the
// later server gives up, but only after its port has already answered in the earlier one's name. A server that wants a password
// first cannot be asked who it is, and is believed.
func (r *Server) answers() bool {
	connection, err := net.DialTimeout("tcp", r.Addr(), time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(time.Second))
	_, _ = connection.Write([]byte("INFO server\r\nQUIT\r\n"))
	reply, _ := io.ReadAll(connection)
	itself := fmt.Sprintf("process_id:%d\r", r.process.command.Process.Pid)
	return bytes.HasPrefix(reply, []byte("-NOAUTH")) || bytes.Contains(reply, []byte(itself))
}

// Addr is where the server listens, as host:port. It stays the same for the server's life, Restart included.
func (r *Server) Addr() string { return address(r.port) }

// Client returns a client of this server, closed when the test t ends. Its options are go-redis's own defaults, retries
// included, because those are what most users bring; each change may set others.
func (r *Server) Client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: r.Addr()}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Stop suspends the server (SIGSTOP) and returns when it really stands still. Connections stay open and new ones are even
// accepted, but nothing is answered, as on a machine that hangs. What clients send meanwhile is executed after Continue, also
// when nobody waits for the answer any more.
func (r *Server) Stop() {
	r.t.Helper()
	if err := suspend(r.process.command.Process); err != nil {
		r.t.Fatalf("redistest: redis-server cannot be stopped: %v", err)
	}
	if !WaitUntil(func() bool { return isSuspended(r.process.command.Process) }, patience) {
		r.t.Fatal("redistest: redis-server was told to stop and runs on")
	}
}

// Continue lets a stopped server run on (SIGCONT). On one that runs it does nothing.
func (r *Server) Continue() {
	r.t.Helper()
	if err := resume(r.process.command.Process); err != nil {
		r.t.Fatalf("redistest: redis-server cannot be continued: %v", err)
	}
}

// Kill ends the server at once (SIGKILL), stopped or not, and returns when it is gone: from then on connections are refused. On
// one that is gone it does nothing.
func (r *Server) Kill() { r.process.kill() }

// Restart kills the server if it still runs, and starts it again on the same port, empty and without any script: what clients
// see of a master that lost its memory.
func (r *Server) Restart() {
	r.t.Helper()
	r.Kill()
	r.start(func() int { return r.port })
}
