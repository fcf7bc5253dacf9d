package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A server that answers on the connections it has, and takes no more, is not flooded with probes.
func TestProbesAreFew(t *testing.T) {
	var dials atomic.Int32
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	}})
	defer func() { _ = client.Close() }()
	began, c := time.Now(), &connectivity{client: client, common: newCommon(breakerTimeout)}
	for range 1000 {
		c.connectFailed()
		c.answered()
	}
	c.common.background.Wait()
	if n, most := dials.Load(), 1+int32(time.Since(began)/probeAgain); n == 0 || n > most {
		t.Errorf("%d probes, want at most %d", n, most)
	}
}

// Close does not wait for a probe, because nobody needs its finding any more.
func TestCloseEndsProbes(t *testing.T) {
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"that connect": func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"that wait for a reply": func(context.Context) (net.Conn, error) {
			conn, _ := net.Pipe()
			return conn, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dial(ctx)
			}})
			defer func() { _ = client.Close() }()
			synctest.Test(t, func(t *testing.T) {
				c := &connectivity{client: client, common: newCommon(breakerTimeout)}
				c.connectFailed()
				synctest.Wait()
				began := time.Now()
				c.common.close()
				if took := time.Since(began); took != 0 || c.cause.Load() != nil {
					t.Errorf("Close took %v, and the probe found %v", took, c.cause.Load())
				}
			})
		})
	}
}

// Whatever a server replies to a probe, there is a finding or none, and never a panic.
func TestProbeReplies(t *testing.T) {
	for reply, want := range map[string]string{
		"+PONG\r\n":                "",
		"-NOAUTH Authentication\r": "",
		"-ERR too many\r\n":        "ERR too many",
		"\x15\x03\x01":             errOnlyTLS.Error(),
		"HTTP/1.1 400\r\n":         errNotRedis.Error() + `: it replies "HTTP/1.1 400"`,
		"\r\n":                     errNotRedis.Error() + `: it replies ""`,
	} {
		got := ""
		if err := (probe{options: new(redis.Options)}).readReply(reply); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", reply, got, want)
		}
	}
}

// A server speaks plainly if its reply to a PING is one of Redis, also if that is an error.
func TestWhatSpeaksPlainly(t *testing.T) {
	for reply, want := range map[string]bool{"+PONG\r\n": true, "-NOAUTH Authentication required.\r\n": true, "HTTP/1.1 400\r\n": false, "": false} {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer server.Close()
			if conn, err := server.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 6))
				_, _ = conn.Write([]byte(reply))
				_ = conn.Close()
			}
		}()
		p := probe{&redis.Options{Network: "tcp", Addr: server.Addr().String()}, newCommon(breakerTimeout)}
		for _, want := range []bool{want, false} { // the second time nobody listens
			if got := p.speaksPlain(t.Context()); got != want {
				t.Errorf("%q: %t, want %t", reply, got, want)
			}
		}
	}
}

// Dialers of users return errors of many kinds for servers that do not answer, or hang up.
func TestProbesWithOtherDialers(t *testing.T) {
	for err, want := range map[error]error{
		context.DeadlineExceeded: errNobody, on("dial", os.ErrDeadlineExceeded): errNobody, io.EOF: errClosing, io.ErrUnexpectedEOF: errClosing,
		on("read", syscall.ECONNRESET): errClosing, on("write", syscall.EPIPE): errClosing, syscall.ECONNREFUSED: syscall.ECONNREFUSED,
	} {
		dialer := func(context.Context, string, string) (net.Conn, error) { return nil, err }
		p := probe{&redis.Options{Dialer: dialer}, newCommon(breakerTimeout)}
		if got := p.ping(t.Context()); !errors.Is(got, want) {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// A probe that gets a connection has no cause to report, and a pool that is exhausted needs no probe.
func TestNothingToReport(t *testing.T) {
	c := &connectivity{client: redistest.Start(t).Client(t), common: newCommon(time.Minute)}
	err := c.noConnectionInTime(redis.ErrPoolExhausted)
	c.probe()
	if cause := c.cause.Load(); cause != nil || !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("the cause is %v, and of the pool: %v", cause, err)
	}
}
