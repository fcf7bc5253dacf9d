package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

const breakerTimeout = 100 * time.Millisecond

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var (
	reset   = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	refused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	late    = &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
)

// tested is a breaker with the changes that it reported.
type tested struct {
	*breaker
	changes []breakerChange
}

func newTested() *tested {
	b := new(tested)
	b.breaker = newBreaker(breakerTimeout, func(c breakerChange) { b.changes = append(b.changes, c) })
	return b
}

// trip makes a trip that takes so long and ends with this error.
func (b *tested) trip(took time.Duration, err error) error {
	return b.run(func() error {
		time.Sleep(took)
		return err
	})
}

func (b *tested) wantState(t *testing.T, want string) {
	t.Helper()
	if got := b.circuit.State().String(); got != want {
		t.Errorf("the breaker is %s, want %s", got, want)
	}
}

func inBubble(t *testing.T, test func(t *testing.T, b *tested)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTested()) })
}

// Errors in a row that show that a server cannot answer open the breaker.
func TestBreakerOpens(t *testing.T) {
	for _, test := range []struct {
		name string
		took time.Duration
		err  error
	}{
		{"no answer", breakerTimeout, late},
		{"no connection in time", breakerTimeout, context.DeadlineExceeded},
		{"no connection set up in time", breakerTimeout, &unreached{cause: errNoSetUp, ended: true}},
		{"no connection set up, told at once", 0, &unreached{cause: io.EOF}},
		{"connection lost", 0, io.EOF},
		{"connection reset", 0, reset},
		{"connection refused", 0, refused},
		{"loading", 0, reply("LOADING Redis is loading the dataset in memory")},
		{"read only", 0, reply("READONLY You can't write against a read only replica. script: f")},
		{"cluster down", 0, reply("CLUSTERDOWN Hash slot not served")},
		{"a script runs for ever", 0, reply("BUSY Redis is busy running a script.")},
		{"too many clients", 0, reply("ERR max number of clients reached")},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *tested) {
				began := time.Now()
				for b.opened.Load() == 0 && time.Since(began) < time.Second {
					b.wantState(t, "closed")
					if err := b.trip(max(test.took, minFailingTime/20), test.err); err != test.err {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took < minFailingTime || took > minFailingTime+3*breakerTimeout {
					t.Errorf("open after %v", took)
				}
				b.wantState(t, "open")
				if err := b.trip(0, nil); err != errBreakerOpen {
					t.Errorf("%v, want no trip", err)
				}
				if len(b.changes) != 1 || !b.changes[0].open || b.opened.Load() != 1 {
					t.Errorf("reported %v", b.changes)
				}
			})
		})
	}
}

// If each failure takes long, two are enough.
func TestBreakerOpensWithinASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, b *tested) {
		began := time.Now()
		b.timeout = 400 * time.Millisecond
		for b.trip(b.timeout, late) != errBreakerOpen {
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("opened after %v", took)
		}
	})
}

// harmless lists outcomes of trips that say nothing about the server, or that it answers.
var harmless = []struct {
	name string
	took time.Duration
	err  error
}{
	{"answered", 0, nil},
	{"the caller left", 0, context.Canceled},
	{"the caller's deadline was near", breakerTimeout / 2, context.DeadlineExceeded},
	{"the caller's deadline was near, on the wire", breakerTimeout / 2, late},
	{"the caller's deadline was near, while a connection was set up", breakerTimeout / 2, &unreached{cause: errNoSetUp, ended: true}},
	{"script unknown", 0, reply("NOSCRIPT No matching script. Please use EVAL.")},
	{"moved", 0, reply("MOVED 3999 127.0.0.1:6381")},
	{"asked", 0, reply("ASK 3999 127.0.0.1:6381")},
	{"try again", 0, reply("TRYAGAIN Multiple keys request during rehashing of slot")},
	{"out of memory", 0, reply("OOM command not allowed when used memory > 'maxmemory'. script: f")},
	{"not logged in", 0, reply("NOAUTH Authentication required.")},
	{"not allowed", 0, reply("NOPERM User x has no permissions to run the 'evalsha' command")},
	{"not allowed in a script", 0, reply("ERR The user executing the script can't run this command or subcommand script: f")},
	{"keys of several slots", 0, redis.ErrCrossSlot},
	{"a foreign value", 0, reply("WRONGTYPE Operation against a key holding the wrong kind of value script: f")},
}

// Errors that say nothing about the server, or that it answers, do not open the breaker.
func TestBreakerStaysClosed(t *testing.T) {
	for _, test := range harmless {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *tested) {
				for range 100 {
					if err := b.trip(test.took, test.err); err != test.err {
						t.Fatal(err)
					}
				}
				b.wantState(t, "closed")
			})
		})
	}
	t.Run("a replica of a cluster", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
			server := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			table := shardTable{common: newCommon(breakerTimeout), cluster: cluster}
			b := tested{breaker: table.shardFor(server).breaker}
			for range 100 {
				_ = b.trip(minFailingTime/20, reply("READONLY You can't write against a read only replica. script: f"))
			}
			b.wantState(t, "closed")
			_, _ = server.Close(), cluster.Close()
		})
	})
	t.Run("failures with an answer between them", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *tested) {
			for i := range 100 {
				var err error = reset
				if i%10 == 0 {
					err = nil
				}
				_ = b.trip(minFailingTime/20, err)
			}
			b.wantState(t, "closed")
		})
	})
	t.Run("many failures at once", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *tested) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { _ = b.trip(10*breakerTimeout, late) })
			}
			all.Wait()
			b.wantState(t, "closed")
			_ = b.trip(0, nil)
			time.Sleep(minFailingTime)
			_ = b.trip(0, reset)
			b.wantState(t, "closed")
		})
	})
	t.Run("few failures, long ago", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *tested) {
			_ = b.trip(0, reset)
			_ = b.trip(0, nil)
			time.Sleep(time.Hour)
			_ = b.trip(0, reset)
			_ = b.trip(0, reset)
			b.wantState(t, "closed")
		})
	})
}

// open returns a breaker that has just opened.
func open() *tested {
	b := newTested()
	for range minFailures {
		_ = b.trip(minFailingTime+time.Millisecond, reset)
	}
	return b
}

// One trip tries whether the server is back, and no other is made meanwhile.
func TestBreakerTriesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open()
		began := time.Now()
		for b.trip(0, reset) == errBreakerOpen {
			time.Sleep(time.Millisecond)
		}
		if waited := time.Since(began); waited < openFor || waited > openFor*3/2+2*time.Millisecond {
			t.Errorf("tried after %v", waited)
		}
		b.wantState(t, "open") // the probe failed
		time.Sleep(openFor * 3 / 2)
		var made, spared int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				err := b.trip(breakerTimeout, nil)
				mu.Lock()
				defer mu.Unlock()
				if err == errBreakerOpen {
					spared++
				} else {
					made++
				}
			})
		}
		all.Wait()
		if made != 1 || spared != 99 {
			t.Errorf("%d probes, %d spared", made, spared)
		}
		b.wantState(t, "closed")
		if last := b.changes[len(b.changes)-1]; len(b.changes) != 2 || last.open || last.after < openFor {
			t.Errorf("reported %v", b.changes)
		}
	})
}

// A trial whose caller leaves says nothing, and does not prevent the next.
func TestBreakerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open()
		time.Sleep(openFor * 3 / 2)
		if err := b.trip(0, context.Canceled); err != context.Canceled {
			t.Fatal(err)
		}
		if err := b.trip(0, nil); err != nil {
			t.Fatal(err)
		}
		b.wantState(t, "closed")
	})
}

// Trips that were on their way when the breaker opened do not count later.
func TestBreakerIgnoresLateTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTested()
		var slow sync.WaitGroup
		for range 10 {
			slow.Go(func() { _ = b.trip(10*openFor, late) })
		}
		synctest.Wait()
		for range minFailures {
			_ = b.trip(minFailingTime+time.Millisecond, reset)
		}
		time.Sleep(2 * openFor)
		_ = b.trip(0, nil)
		slow.Wait()
		b.wantState(t, "closed")
	})
}

// If a server answers, a breaker costs no allocation.
func TestBreakerAllocatesNothing(t *testing.T) {
	b := newTested()
	answer := func() error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = b.run(answer) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
