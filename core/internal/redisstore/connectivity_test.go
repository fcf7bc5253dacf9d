package redisstore

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
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
