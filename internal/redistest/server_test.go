package redistest_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// impatient makes a client give up after 200 ms, and try once.
func impatient(o *redis.Options) {
	o.ReadTimeout = 200 * time.Millisecond
	o.MaxRetries = -1
}

func mustSet(t *testing.T, client redis.Cmdable, key, value string) {
	t.Helper()
	if err := client.Set(context.Background(), key, value, 0).Err(); err != nil {
		t.Fatalf("SET %s: %v", key, err)
	}
}

func wantValue(t *testing.T, client redis.Cmdable, key, want string) {
	t.Helper()
	if got, err := client.Get(context.Background(), key).Result(); err != nil || got != want {
		t.Fatalf("GET %s = %q, %v, want %q", key, got, err, want)
	}
}

func TestServerEndsWithItsTest(t *testing.T) {
	var server *redistest.Server
	t.Run("inner", func(t *testing.T) { server = redistest.Start(t) })
	if err := server.Client(t, impatient).Ping(context.Background()).Err(); err == nil {
		t.Fatal("the server outlived the test that started it")
	}
}

func TestStopAndContinue(t *testing.T) {
	server := redistest.Start(t)
	mustSet(t, server.Client(t), "key", "before")
	server.Stop()
	if err := server.Client(t, impatient).Ping(context.Background()).Err(); err == nil {
		t.Fatal("a stopped server answered")
	}
	server.Continue()
	wantValue(t, server.Client(t), "key", "before")
}

// failing is a test that only records its failure.
type failing struct {
	*testing.T
	message string
}

func (f *failing) Fatal(args ...any) {
	f.message = fmt.Sprint(args...)
	panic(f)
}

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// failure runs body on a test that may fail and returns its failure message.
func failure(t *testing.T, body func(testing.TB)) string {
	f := &failing{T: t}
	func() {
		defer func() {
			if raised := recover(); raised != nil && raised != f {
				panic(raised)
			}
		}()
		body(f)
	}()
	return f.message
}

func TestFailuresSayWhatToDo(t *testing.T) {
	wrongOption := func(t testing.TB) { redistest.Start(t, "--no-such-option", "1") }
	if got := failure(t, wrongOption); !strings.Contains(got, "no-such-option") {
		t.Errorf("with a wrong option: %q, want what the server said", got)
	}
	stopTheDead := func(t testing.TB) {
		server := redistest.Start(t)
		server.Kill()
		server.Stop()
	}
	if got := failure(t, stopTheDead); !strings.Contains(got, "cannot be stopped") {
		t.Errorf("Stop after Kill: %q, want that it cannot be stopped", got)
	}
	t.Setenv("ACCESSLIMIT_REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("redis-server"); err == nil {
		t.Fatal("redis-server is found on an empty PATH")
	}
	noServer := func(t testing.TB) { redistest.Start(t) }
	if got := failure(t, noServer); !strings.Contains(got, "redis-server is missing") || !strings.Contains(got, "make redis") {
		t.Errorf("without redis-server: %q, want which program is missing and what installs it", got)
	}
}
