package marks

import (
	"context"
	_ "embed"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

var (
	//go:embed follow.lua
	followText   string
	followScript = algorithm.NewScript(followText)
)

const (
	// shortest and longest bound the time between two readings. It is random, so that the processes of
	// a fleet do not read at the same time.
	shortest, longest = 400 * time.Millisecond, 600 * time.Millisecond
	// keptChanges is about how many changes the stream has: those of a hundred seconds of an attack.
	keptChanges = 10_000
	// atOnce is how many changes are read in one trip.
	atOnce = 500
	// inATrip is how many marks are written in one trip, or strikes sent. Redis answers nobody else
	// meanwhile, about half a millisecond.
	inATrip = 50
	// A process that decides no calls for restAfter rests: it reads every restEvery, and the first calls
	// afterwards ask for the marks of their own subjects.
	restAfter, restEvery = 10 * time.Second, 5 * time.Minute
	// fresh is how old the last reading may be for the table to be written back. It is longer than a
	// process rests. A later act is newer than a mark that is written back, so it holds; and removals are
	// kept for a day.
	fresh = 2 * restEvery
	// suspension is how long the set's clock may stand still, because the machine is suspended, until
	// the ends of the marks are read again.
	suspension = time.Minute
)

// follower reads what has changed in Redis.
type follower struct {
	set *Set

	closing context.Context // ends when the set is closed
	stop    context.CancelFunc

	mu      sync.Mutex // held to plan
	timer   *time.Timer
	resting bool
	calls   uint64     // that were decided until busy
	busy    time.Time  // when calls were last decided
	reading sync.Mutex // held during a reading
	latest  string     // the ID of the last change that was read
	epoch   string     // of the hash, then
	read    time.Time  // when the last reading began that succeeded
	ahead   int64      // by how much the clock of Redis was ahead of the set's when all marks were read
	failing bool       // readings fail
	// mayRestore is set if marks that Redis has lost may be written back: the table was fresh then, or
	// when readings began to fail, at most a day ago.
	mayRestore bool
	lost       []*Mark // marks that Redis has lost
	restored   int     // how many of them this process has written back
}

// Start begins to follow the changes of all processes, unless that has begun. Without Redis, there are
// no others.
func (s *Set) Start() {
	if s.Redis != nil {
		s.follow.plan(0, false)
	}
}

// Close ends the reading. A reading that is under way ends with its present trip, for which Close does
// not wait.
func (s *Set) Close() {
	f := &s.follow
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
	if f.timer != nil {
		f.timer.Stop()
	}
}

// plan schedules the next reading. again says that it follows another one.
func (f *follower) plan(after time.Duration, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing.Err() != nil || f.timer != nil && !again {
		return
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = time.AfterFunc(after, panics.Guard(f.round, f.set.Log.Panicked))
}

// next returns after what time the next reading follows, and begins to rest if no calls are decided.
func (f *follower) next() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if calls := f.set.Calls(); calls != f.calls || f.busy.IsZero() {
		f.calls, f.busy = calls, time.Now()
	}
	if !f.resting && time.Since(f.busy) > restAfter && !f.set.strikes.hasDue() {
		f.resting = true
		f.set.rest()
	}
	if f.resting {
		return restEvery
	}
	return shortest + rand.N(longest-shortest)
}

// wake ends the rest.
func (f *follower) wake() {
	f.mu.Lock()
	wakes := f.resting
	f.resting, f.busy = false, time.Now()
	f.mu.Unlock()
	if wakes {
		f.plan(0, true)
	}
}

func (f *follower) round() {
	defer func() { f.plan(f.next(), true) }() // also after a panic
	if f.set.Read(f.closing) == nil {
		f.set.feature.TurnOn()
	}
	f.set.strikes.setFull(false)
	f.set.impose(f.closing)
}

// Read reads what has changed. If the store does not answer, nothing is logged, because calls log that.
func (s *Set) Read(ctx context.Context) error {
	f := &s.follow
	f.reading.Lock()
	defer f.reading.Unlock()
	began, age := time.Now(), f.age()
	if err := f.tryToRead(ctx, age); err != nil {
		if !f.failing {
			f.failing, f.mayRestore = true, age < fresh
		}
		switch class := failure.ClassOf(err); {
		case ctx.Err() != nil:
		case s.feature.TurnOff(err):
			s.Log.MarksOff(err)
		case class == failure.Foreign, class == failure.Unexpected:
			s.Log.MarksFailed(err)
		}
		return err
	}
	f.failing, f.read = false, began
	f.mu.Lock() // so that the process does not begin to rest meanwhile
	defer f.mu.Unlock()
	if !f.resting {
		s.becomeReady()
	}
	return nil
}

// age returns how long ago the last reading began that succeeded, also by the wall clock, because the
// other one stands still while the machine is suspended.
func (f *follower) age() time.Duration {
	if f.read.IsZero() {
		return never
	}
	return max(time.Since(f.read), time.Now().Round(0).Sub(f.read.Round(0)))
}

// tryToRead reads the changes behind the last one that was read. If that is not there any more, or the
// machine was suspended, it reads all marks. age is how old the last reading is.
func (f *follower) tryToRead(ctx context.Context, age time.Duration) error {
	for {
		news, err := f.news(ctx)
		ahead := news.now - f.set.Now()
		switch suspended := ahead > f.ahead+suspension.Microseconds(); {
		case err != nil:
			return err
		case news.latest == f.latest && !f.read.IsZero() && !suspended:
			return f.restore(ctx)
		case news.latest == "" || len(news.changes) < 2 || news.changes[0].id != f.latest || suspended:
			// Redis has lost something, unless the process fell behind and the stream is too short.
			lost := news.epoch != f.epoch || news.before
			f.mayRestore = lost && (age < fresh || f.failing && f.mayRestore && age < keepRemoved)
			if err := f.readAll(ctx, news.now); err != nil {
				return err
			}
			f.latest, f.epoch, f.read, f.ahead = news.latest, news.epoch, time.Now(), ahead
		default:
			f.apply(news.changes[1:], news.now)
		}
	}
}

// change is an entry of the stream.
type change struct {
	id     string
	gone   bool
	stored string
}

// news is what Redis says of the changes: see follow.lua.
type news struct {
	now           int64
	latest, epoch string
	before        bool
	changes       []change
}

// news asks Redis for changes.
func (f *follower) news(ctx context.Context) (n news, err error) {
	s := f.set
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Script(ctx, followScript, []string{s.keys[0], s.keys[3]}, f.latest, atOnce)
		if err != nil {
			return err
		}
		var ok bool
		if n, ok = readNews(reply); !ok {
			return unexpected(reply)
		}
		s.Redis.SawTime(n.now)
		return nil
	})
	return n, err
}

func readNews(reply []any) (n news, ok bool) {
	if len(reply) != 5 {
		return n, false
	}
	now, isTime := reply[0].(int64)
	latest, isID := reply[1].(string)
	epoch, isText := reply[2].(string)
	before, isNumber := reply[3].(int64)
	entries, isList := reply[4].([]any)
	n = news{now: now, latest: latest, epoch: epoch, before: before > 0}
	for _, item := range entries {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return n, false
		}
		var c change
		c.id, _ = pair[0].(string)
		if fields, _ := pair[1].([]any); len(fields) == 2 { // otherwise it is not one of ours, and unreadable
			c.gone = fields[0] == "gone"
			c.stored, _ = fields[1].(string)
		}
		n.changes = append(n.changes, c)
	}
	return n, isTime && isID && isText && isNumber && isList
}

// apply puts changes into the table.
func (f *follower) apply(changes []change, now int64) {
	for _, c := range changes {
		f.latest = c.id
		m, err := f.set.read(c.stored, now)
		switch {
		case err != nil:
			f.set.Log.MarkUnreadable(err)
		case c.gone:
			f.set.drop(m)
		default:
			f.set.put(m)
		}
	}
}
