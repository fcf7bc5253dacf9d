package toplist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// scripted are slots whose errors the test sets. After each error, done says how many entries of
// that call may have been added.
type scripted struct {
	*Memory
	err  error
	only string // the list that has the error, or "*" for every list
	done int
	adds int // calls
}

func (s *scripted) Add(ctx context.Context, list string, of kind, entries []Entry) (added int, err error) {
	if s.adds++; s.err != nil && (s.only == "*" || s.only == list) {
		done := min(s.done, len(entries))
		_, _ = s.Memory.Add(ctx, list, of, entries[:done])
		return done, s.err
	}
	return s.Memory.Add(ctx, list, of, entries)
}

// Here implements Slots: Read does not flush.
func (s *scripted) Here() bool { return false }

// newScripted returns a table with such slots, and the errors that it reports. Its clock stands still, so
// that no flush takes too long on a busy machine and leaves rules out.
func newScripted(t *testing.T) (*Table, *scripted, *[]error) {
	slots, failed := &scripted{Memory: NewMemory(), only: "*"}, new([]error)
	table := New(slots, func(func()) {}, logFunc(func(err error) { *failed = append(*failed, err) }))
	table.now = func() time.Duration { return 0 }
	bounded.Cleanup(t, table.Close)
	return table, slots, failed
}

func wantRefused(t *testing.T, table *Table, list string, want ...Entry) {
	t.Helper()
	lists, err := Read(background, table, list, 60)
	if err != nil {
		t.Fatal(err)
	}
	var got []Entry
	for _, e := range lists.Refused {
		got = append(got, e.Entry)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is %v, want %v", got, want)
	}
}

// While the slots fail, refusals wait. Each is added once in the end, and those that may have been
// added are not added again.
func TestRefusalsWait(t *testing.T) {
	table, slots, failed := newScripted(t)
	r, other := table.Rule("api"), table.Rule("other")
	for of, n := range map[*Rule]int{r: 3, other: 2} {
		for range n {
			of.NoteRefusal(1, []byte("a"))
		}
	}
	r.NoteRefusal(1, []byte("b"))
	slots.err = &failure.Error{Class: failure.Refused, Err: errors.New("OOM")}
	for range 20 {
		table.Flush()
	}
	slots.done = 1 // the greatest may have been added
	table.Flush()
	r.NoteRefusal(1, []byte("b"))
	slots.only, slots.done = all, 0
	table.Flush()
	slots.err = nil
	table.Flush()
	wantRefused(t, table, "api", Entry{"a", 3}, Entry{"b", 2})
	wantRefused(t, table, "other", Entry{"a", 2})
	wantRefused(t, table, all, Entry{"a", 3}, Entry{"b", 2}, Entry{"a", 2})
	if len(*failed) != 22 {
		t.Errorf("%d errors were reported", len(*failed))
	}
}

// reply is an error in a reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// While a right is missing, nothing is added, and refusals wait.
func TestATableThatIsOff(t *testing.T) {
	table, slots, failed := newScripted(t)
	slots.err = &failure.Error{Class: failure.Refused, Err: reply("NOPERM this user has no permissions")}
	table.Rule("api").NoteRefusal(1, []byte("a"))
	for range 3 {
		table.Flush()
	}
	if slots.adds != 1 || len(*failed) != 1 {
		t.Errorf("%d additions, and %d errors were reported", slots.adds, len(*failed))
	}
	slots.err, table.feature = nil, optional.Feature{}
	table.Flush()
	wantRefused(t, table, "api", Entry{"a", 1})
}

// Nothing is reported while Redis does not answer, because calls report that.
func TestAnOutageIsNotReported(t *testing.T) {
	table, slots, failed := newScripted(t)
	slots.err = &failure.Error{Class: failure.Unreachable, Err: errors.New("down")}
	table.Rule("api").NoteRefusal(1, []byte("a"))
	table.Flush()
	if slots.adds == 0 || len(*failed) > 0 {
		t.Errorf("reported: %v", *failed)
	}
}

// A foreign value under the key of one list does not keep other lists from being written.
func TestAForeignValueConcernsOneList(t *testing.T) {
	client := redistest.Start(t).Client(t)
	slots := newRedis(t, client)
	var failed []error
	table := New(slots, func(func()) {}, logFunc(func(err error) { failed = append(failed, err) }))
	defer table.Close()
	now := time.Now().Unix() / 60
	for minute := range int64(3) {
		client.Set(background, slots.key("api", Refused, now+minute), "text", 0)
	}
	table.Rule("api").NoteRefusal(1, []byte("a"))
	table.Rule("other").NoteRefusal(1, []byte("a"))
	table.Flush()
	if len(failed) != 1 || failure.ClassOf(failed[0]) != failure.Foreign {
		t.Errorf("reported: %v", failed)
	}
	wantRefused(t, table, "other", Entry{"a", 1})
	if got := client.Get(background, slots.key("api", Refused, now)).Val(); got != "text" {
		t.Errorf("the value is now %q", got)
	}
}

// lossy is a client whose replies to scripts get lost.
type lossy struct {
	redis.UniversalClient
	lost atomic.Int64
}

func (c *lossy) Process(ctx context.Context, cmd redis.Cmder) error {
	err := c.UniversalClient.Process(ctx, cmd)
	if name := cmd.Name(); (name == "eval" || name == "evalsha") && err == nil && c.lost.Add(-1) >= 0 {
		err = fmt.Errorf("the connection broke")
		cmd.SetErr(err)
	}
	return err
}

// A refusal whose reply was lost is not added twice.
func TestALostReplyAddsNothingTwice(t *testing.T) {
	client := &lossy{UniversalClient: redistest.Start(t).Client(t)}
	table := New(newRedis(t, client), func(func()) {}, logFunc(func(error) {}))
	defer table.Close()
	r := table.Rule("api")
	for range 5 {
		r.NoteRefusal(1, []byte("a"))
		client.lost.Store(1)
		table.Flush()
		client.lost.Store(0)
		table.Flush()
	}
	wantRefused(t, table, "api", Entry{"a", 5})
}

// A table flushes some seconds after it has begun to note something, in the background, as long as
// there is something to flush.
func TestFlushesAreScheduled(t *testing.T) {
	table, slots, _ := newScripted(t)
	if table.timer != nil {
		t.Error("a flush is scheduled though nothing was noted")
	}
	r := table.Rule("api")
	r.NoteRefusal(1, []byte("a"))
	for flushes := range 2 {
		if table.timer == nil || !table.timer.Stop() {
			t.Fatalf("no flush is scheduled after %d", flushes)
		}
		table.flushSoon()
	}
	if table.timer != nil || r.found[Refused].found != nil || slots.adds != 2 {
		t.Errorf("after %d additions, there is still something to do", slots.adds)
	}
	r.NoteRefusal(1, []byte("a"))
	table.Close()
	r.NoteRefusal(1, []byte("a"))
	if table.timer.Stop() {
		t.Error("a flush is scheduled after Close")
	}
	wantRefused(t, table, "api", Entry{"a", 2})
}

// A rule that refuses again at the moment when it is retired is part of the next flush. In an earlier
// version, it was in no list from then on.
func TestARefusalWhileARuleIsRetired(t *testing.T) {
	table := newTable(t, NewMemory(), new(time.Duration))
	var seconds atomic.Int64 // each look at the clock takes one, so that nothing is sampled
	table.now = func() time.Duration { return time.Duration(seconds.Add(1)) * time.Second }
	rule, done := table.Rule("r"), make(chan struct{})
	go func() {
		defer close(done)
		for range 1_500_000 {
			rule.NoteRefusal(1, []byte("user:1"))
		}
	}()
	for running := true; running; {
		rule.take(Refused)
		table.retire([]*Rule{rule})
		if active, flushed := isActive(rule); active != flushed {
			t.Errorf("the rule is active: %t; it is in the next flush: %t", active, flushed)
			break
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	<-done
}

// isActive reports whether a rule is active, and whether the next flush includes it.
func isActive(r *Rule) (active, flushed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active, slices.Contains(r.table.inTurn(), r)
}
