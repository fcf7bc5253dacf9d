// Package redistest starts real Redis servers for tests: one server, a cluster, a ring, or a master
// watched by Sentinels. Each belongs to one test, which can stop, kill and restart it.
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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

	"github.com/accesslimit/accesslimit/internal/bounded"
)

const (
	// patience bounds each wait for a server. Only a broken server uses it up: a healthy one
	// answers within about 20 ms.
	patience = time.Minute
	// attempts is how many ports are tried when another process takes the one that was just free.
	attempts = 5
)

// Server is a real redis-server for one test, on a loopback port, empty at first. It is gone when
// the test ends, and on Linux also when the test binary is killed.
//
// Its methods may be called from any goroutine, but Stop, Continue, Kill and Restart only one at a
// time. A method that fails fails the test that started the server, as t.FailNow does.
type Server struct {
	t       testing.TB
	port    int
	config  string // a Sentinel's configuration file, in which it keeps its state; "" for others
	args    []string
	process *process
}

// program returns the program that is started as a server.
func program() string { return cmp.Or(os.Getenv("ACCESSLIMIT_REDIS_SERVER"), "redis-server") }

// Start starts a redis-server and returns when it answers. The server keeps nothing on disk, except
// in a temporary directory that the test removes. The args, such as "--maxmemory", "2mb", come last
// on its command line and thus override the ones set here.
//
// The environment variable ACCESSLIMIT_REDIS_SERVER names another program to start, by its absolute
// path: a redis-server of another version, or a valkey-server.
//
// If the program is missing, the test fails. It is never skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath(program()); err != nil {
		t.Fatalf(`redistest: the program %s is missing; "make redis" in the accesslimit repository installs redis-server`, program())
	}
	r := newServer(t, args)
	r.start(func() int { return freePort(t) })
	return r
}

// newServer prepares a server without a port. It is killed when the test ends.
func newServer(t testing.TB, args []string) *Server {
	own := []string{"--bind", loopback, "--save", "", "--appendonly", "no", "--dir", t.TempDir()}
	r := &Server{t: t, args: append(own, args...)}
	bounded.Cleanup(t, func() {
		if r.process != nil {
			r.Kill()
		}
	})
	return r
}

// start runs the server on one of the ports that next returns.
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

// launch runs the server on its port. The error contains what the server printed before it ended.
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

// answers reports whether this process answers, and not another one on its port. When two test
// binaries pick the same port, the later server ends, but only after the earlier one has answered
// in its place. A server that requires a password cannot be asked for its process, so its answer is
// enough.
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

// Addr returns where the server listens, as host:port. It stays the same after Restart.
func (r *Server) Addr() string { return address(r.port) }

// Client returns a client of this server, which is closed when the test t ends. Its options are
// go-redis's defaults, retries included, because most users have these; each change may set others.
func (r *Server) Client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: r.Addr()}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewClient(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}

// Stop suspends the server (SIGSTOP) and returns when it has stopped. Connections stay open, and
// new ones are even accepted, but nothing is answered, as on a machine that hangs. Commands that
// clients send meanwhile are executed after Continue, even if no client waits for the answers any
// more.
func (r *Server) Stop() {
	r.t.Helper()
	if err := suspend(r.process.command.Process); err != nil {
		r.t.Fatalf("redistest: redis-server cannot be stopped: %v", err)
	}
	if !WaitUntil(func() bool { return isSuspended(r.process.command.Process) }, patience) {
		r.t.Fatal("redistest: redis-server still runs after SIGSTOP")
	}
}

// Continue continues a stopped server (SIGCONT). It does nothing if the server runs.
func (r *Server) Continue() {
	r.t.Helper()
	if err := resume(r.process.command.Process); err != nil {
		r.t.Fatalf("redistest: redis-server cannot be continued: %v", err)
	}
}

// Clear removes all keys and scripts, as if the server were new.
func (r *Server) Clear() error {
	ctx, client := context.Background(), r.probe()
	defer func() { _ = client.Close() }()
	return errors.Join(client.FlushAll(ctx).Err(), client.ScriptFlush(ctx).Err())
}

// Kill ends the server at once (SIGKILL), stopped or not, and returns when it is gone. From then on
// connections are refused. It does nothing if the server is gone.
func (r *Server) Kill() { r.process.kill() }

// Restart kills the server if it still runs, and starts it again on the same port, empty and
// without any script, like a master that lost its memory.
func (r *Server) Restart() {
	r.t.Helper()
	r.Kill()
	r.start(func() int { return r.port })
}
