package notices

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// patient is a timeout that a healthy Redis never needs, however busy the machine.
const patient = time.Minute

func newStore(t *testing.T, server *redistest.Server, timeout time.Duration) *redisstore.Store {
	t.Helper()
	store := redisstore.New(server.Client(t), timeout)
	bounded.Cleanup(t, store.Close)
	return store
}

// post leaves one notice that ends after a span.
func post(board Board, key string, span time.Duration) Posted {
	now := time.Now()
	return board.Post(context.Background(), []Notice{{Key: key, Limit: "10", At: now.UnixMicro(), Ends: now.Add(span).UnixMicro()}})[0]
}

// A notice is left once, by whichever process is the first, and again when its time is over. One
// that comes too late is nobody's.
func TestANoticeIsLeftOnce(t *testing.T) {
	server := redistest.Start(t)
	memory := Memory{memstore.New(1000, nil)}
	bounded.Cleanup(t, memory.Store.Close)
	for name, boards := range map[string][]Board{
		"memory": {memory, memory},
		"redis":  {Redis{newStore(t, server, patient)}, Redis{newStore(t, server, patient)}},
	} {
		t.Run(name, func(t *testing.T) {
			want := func(n int, key string, span time.Duration, first bool) {
				t.Helper()
				if got := post(boards[n], key, span); got.Err != nil || got.First != first {
					t.Errorf("%s for %v: %+v", key, span, got)
				}
			}
			for i := range boards {
				want(i, "late", -time.Hour, false)
				want(i, "late", -time.Millisecond, false)
			}
			want(1, "late", time.Hour, true) // the late ones were not left
			want(0, "late", -time.Hour, false)
			want(0, "k", time.Hour, true)
			want(0, "k", time.Hour, false)
			want(1, "k", 2*time.Hour, false)
			want(1, "other", time.Hour, true)
			for !post(boards[0], "short", 20*time.Millisecond).First { // unless the machine is too busy
			}
			again := func() bool { return post(boards[1], "short", time.Hour).First }
			if !redistest.WaitUntil(again, patient) {
				t.Error("a notice lives for longer than its time")
			}
		})
	}
}

// A notice is left once for each limit, and has room for 16 of them until the first one ends.
func TestANoticeOfManyLimits(t *testing.T) {
	memory := Memory{memstore.New(1000, nil)}
	bounded.Cleanup(t, memory.Store.Close)
	for name, board := range map[string]Board{"memory": memory, "redis": Redis{newStore(t, redistest.Start(t), patient)}} {
		ends, left := time.Now().Add(time.Hour).UnixMicro(), 0
		for n := range 40 {
			if board.Post(context.Background(), []Notice{{Key: "k", Limit: fmt.Sprint(n % 20), Ends: ends}})[0].First {
				left++
			}
		}
		if left != 16 {
			t.Errorf("%s: %d notices were left, want 16", name, left)
		}
	}
}

// In one batch, every notice has its own answer.
func TestABatchOfNotices(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	if err := client.RPush(context.Background(), "list", "x").Err(); err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(time.Hour).UnixMicro()
	posted := Redis{newStore(t, server, patient)}.Post(context.Background(), []Notice{
		{Key: "a", Limit: "10", Ends: ends}, {Key: "a", Limit: "10", Ends: ends}, {Key: "list", Limit: "10", Ends: ends},
		{Key: "b", Limit: "10", Ends: 0}, {Key: "c", Limit: "10", Ends: ends}, {Key: "a", Limit: "20", Ends: ends}, {Key: "a", Limit: "10", Ends: ends},
	})
	for i, first := range []bool{true, false, false, false, true, true, false} {
		if posted[i].First != first || (posted[i].Err != nil) != (i == 2) {
			t.Errorf("notice %d: %+v", i, posted[i])
		}
	}
	for _, key := range []string{"a", "c"} {
		if ttl := client.PTTL(context.Background(), key).Val(); ttl <= 0 || ttl > time.Hour+time.Millisecond {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

// A server that hangs, or is gone, keeps nobody for longer than the timeout, and nothing is left.
func TestAServerThatHangs(t *testing.T) {
	server := redistest.Start(t)
	board := Redis{newStore(t, server, 50*time.Millisecond)}
	server.Stop()
	if got := post(board, "k", time.Hour); got.Err == nil || got.First {
		t.Errorf("a server that hangs: %+v", got)
	}
	server.Continue()
	server.Kill()
	if got := post(board, "k", time.Hour); got.Err == nil || got.First {
		t.Errorf("a server that is gone: %+v", got)
	}
}

// silent is a Log that nobody reads.
type silent struct{}

func (silent) NoticesDropped()    {}
func (silent) NoticeFailed(error) {}
func (silent) NoticesOff(error)   {}
func (silent) Panicked(error)     {}

// Use that moves up and down asks Redis once a second.
func TestRecentNoticesAreNotLeftAgain(t *testing.T) {
	server := redistest.Start(t)
	queue := NewQueue(Redis{newStore(t, server, patient)}, silent{})
	reported, now := 0, time.Now().UnixMicro()
	notice := Notice{Key: "k", Limit: "10", At: now, Ends: now + 3600*1_000_000, Report: func(context.Context) { reported++ }}
	for range 1000 {
		if queue.Knows([]byte("k"), "10", notice.At) != (notice.At > now) {
			t.Errorf("after %d us, the notice is known: %v", notice.At-now, notice.At == now)
		}
		queue.Add(notice)
		queue.Await(context.Background())
		notice.At += 999
	}
	if sets := server.Calls("evalsha"); sets != 1 {
		t.Errorf("%d notices were left", sets)
	}
	for _, at := range []int64{now + remembered, now - 1} { // later, and after the clock stepped back
		if notice.At = at; queue.Knows([]byte("k"), "10", at) {
			t.Error("the notice is known")
		}
		queue.Add(notice)
		queue.Await(context.Background())
	}
	queue.Forget([]byte("k"))
	if queue.Add(notice); queue.Knows([]byte("x"), "10", notice.At) {
		t.Error("an unknown notice is known")
	}
	queue.Close(patient)
	queue.Add(notice)
	if sets := server.Calls("evalsha"); sets != 4 || reported != 1 || !queue.Knows([]byte("x"), "10", notice.At) {
		t.Errorf("%d notices were left, and %d reported", sets, reported)
	}
}

// The memory of recent notices is bounded.
func TestRecentIsBounded(t *testing.T) {
	var r recent
	for i := range 10 * maxRecent {
		r.add(&Notice{Key: fmt.Sprint(i), At: 1, Ends: 9})
	}
	if len(r.newer) > maxRecent || len(r.older) > maxRecent || !r.has(fmt.Append(nil, 10*maxRecent-1), "", 1) || r.has([]byte("0"), "", 1) {
		t.Errorf("%d and %d are remembered", len(r.newer), len(r.older))
	}
	if last := fmt.Append(nil, 10*maxRecent-1); r.has(last, "", 9) || !r.has(last, "", 8) {
		t.Error("a notice is known for longer than its time")
	}
	for range maxRecent { // so that it is in the older half
		r.add(&Notice{Key: fmt.Sprint("other", len(r.newer)), At: 1, Ends: 9})
	}
	older := fmt.Append(nil, 10*maxRecent-1)
	known := r.has(older, "", 8)
	if r.forget(older); !known || r.has(older, "", 8) {
		t.Errorf("an older notice was known: %t, and is after it was forgotten: %t", known, r.has(older, "", 8))
	}
}

// atOnce is a Board in which every notice is the first.
type atOnce struct{}

func (atOnce) Post(_ context.Context, batch []Notice) []Posted {
	posted := make([]Posted, len(batch))
	for i := range posted {
		posted[i].First = true
	}
	return posted
}

// counted is a Log that counts what was dropped.
type counted struct {
	silent
	dropped atomic.Int64
}

func (c *counted) NoticesDropped() { c.dropped.Add(1) }

// Notices that keep much memory are dropped before there are many, and there is room again when they
// are reported.
func TestLongNoticesAreBounded(t *testing.T) {
	var log counted
	queue := NewQueue(atOnce{}, &log)
	var reported atomic.Int64
	for round := range 3 {
		reporting, goOn := make(chan struct{}), make(chan struct{})
		queue.Add(Notice{Key: fmt.Sprint("first", round), Size: maxBytes / 4, Report: func(context.Context) {
			close(reporting)
			<-goOn
		}})
		<-reporting
		for i := range 10 {
			queue.Add(Notice{Key: fmt.Sprint(round, i), Size: maxBytes / 4, Report: func(context.Context) { reported.Add(1) }})
		}
		close(goOn)
		queue.Await(context.Background())
		if reports, dropped := reported.Load(), log.dropped.Load(); reports != 3*int64(round+1) || dropped != 7*int64(round+1) {
			t.Errorf("round %d: %d notices were reported and %d dropped, want 3 and 7 in each round", round, reports, dropped)
		}
	}
	queue.Add(Notice{Key: "huge", Size: 2 * maxBytes, Report: func(context.Context) { reported.Add(1) }})
	queue.Close(patient)
	if reported.Load() != 10 {
		t.Error("a notice that waits alone was dropped")
	}
}

// A report that ends its goroutine ends no other report.
func TestAReportEndsItsGoroutine(t *testing.T) {
	queue := NewQueue(atOnce{}, silent{})
	var reported atomic.Int64
	for i := range 3 {
		queue.Add(Notice{Key: fmt.Sprint(i), Report: func(context.Context) {
			reported.Add(1)
			runtime.Goexit()
		}})
		queue.Await(context.Background())
	}
	queue.Close(patient)
	if reported.Load() != 3 {
		t.Errorf("%d of 3 notices were reported", reported.Load())
	}
}
