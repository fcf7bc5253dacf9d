package marks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

const (
	// Most is the largest number of marks of a prefix, those of removals included.
	Most = 100_000
	// MostBans is how many bans by rules are new in a second at most. Beyond that, limits refuse alone.
	MostBans = 1_000
	// keepRemoved is how long a removal is kept, so that nothing older is written back.
	keepRemoved = 24 * time.Hour
	// unconfirmed is how long an act that Redis did not confirm holds in its process.
	unconfirmed = time.Minute
)

// The errors of acts.
var (
	ErrFull  = errors.New("there are too many marks: remove some")
	ErrEnded = errors.New("the end has passed")
)

// Options are what a Set is made of.
type Options struct {
	Redis *redisstore.Store // nil to keep the marks in this process
	// Prefix is that of the keys in Redis.
	Prefix string
	// Now is a clock of this process in microseconds, which never steps back.
	Now func() int64
	// SinceEpoch is the clock that takes the place of that of Redis, without it.
	SinceEpoch func() int64
	// Compile makes something of the Limits of a mark, for its readers. It is nil if they need nothing.
	Compile func(limits string) (any, error)
	Log     Log
	// Calls returns how many calls Redis has decided so far.
	Calls func() uint64
	// Most is the largest number of marks: [Most], except in tests.
	Most int
	// MostBans is how many bans by rules are new in a second at most: [MostBans], except in tests.
	MostBans int
}

// Log receives what an operator should know.
type Log interface {
	// MarksOff reports that a right that is needed to read the marks is missing.
	MarksOff(err error)
	// MarksFailed reports that the keys of the marks hold something else.
	MarksFailed(err error)
	// MarkUnreadable reports a mark that this process cannot read. Nobody obeys it here.
	MarkUnreadable(err error)
	// MarksWrittenBack reports that Redis has lost marks, and how many this process has written back.
	MarksWrittenBack(n int)
	// Panicked reports a panic that was caught.
	Panicked(err error)
}

// Set has all marks of a prefix. It is safe for concurrent use.
type Set struct {
	Options
	redis   redisstore.Pinned // Options.Redis
	keys    []string          // those of act.lua, and that of the process that writes back
	feature optional.Feature
	follow  follower
	strikes strikes

	// ready reports whether all marks were read. It changes while the set is locked.
	ready atomic.Bool
	// asked is how many marks there are, plus one until all marks were read.
	asked atomic.Int64

	limits cowmap.Map[string, *limits] // by their texts

	mu        sync.Mutex
	rules     map[string]*Rule
	count     int   // of marks in the rules
	nextSweep int   // the count at which marks that have ended are removed
	number    int64 // of the latest act, without Redis
	second    int64 // and how many bans by rules were new in it that Redis does not count
	bans      int
	reading   int  // the number of the last reading of all marks
	takes     bool // marks that are read take the place of newer ones, because the table is out of date
}

// NewSet returns a set that has not read anything yet.
func NewSet(o Options) *Set {
	s := &Set{Options: o, redis: redisstore.Pinned{Store: o.Redis}, rules: make(map[string]*Rule), nextSweep: minSweep}
	for _, key := range [...]string{"mh1", "me1", "mb1", "mc1", "mw1"} {
		s.keys = append(s.keys, o.Prefix+":{%marks}:"+key)
	}
	s.follow.closing, s.follow.stop = context.WithCancel(context.Background())
	s.ready.Store(o.Redis == nil)
	if s.follow.set = s; !s.ready.Load() {
		s.asked.Add(1)
	}
	return s
}

// maxRules is how many names without marks are kept, because callers may make up routes.
const maxRules = 10_000

// Rule returns the marks under the rules of a name.
func (s *Set) Rule(name string) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules[name] == nil && len(s.rules) >= maxRules {
		return &Rule{set: s, name: strings.Clone(name), asked: &s.asked, unlisted: true}
	}
	return s.rule(name)
}

// listed returns the rule of a name that has marks, or an empty one.
func (s *Set) listed(name string) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rules[name]; r != nil {
		return r
	}
	return &Rule{set: s}
}

// rule is Rule. The set must be locked.
func (s *Set) rule(name string) *Rule {
	r := s.rules[name]
	if r == nil {
		r = &Rule{set: s, name: strings.Clone(name)}
		r.asked = &r.own
		if !s.ready.Load() {
			r.asked.Add(1)
		}
		s.rules[r.name] = r
	}
	return r
}

// becomeReady says that the table has all marks.
func (s *Set) becomeReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready.Load() {
		s.ready.Store(true)
		s.addAsked(-1)
	}
}

// Refresh reads what has changed, so that All is up to date. Without Redis, it always is.
func (s *Set) Refresh(ctx context.Context) error {
	if s.Redis == nil {
		return nil
	}
	return s.Read(ctx)
}

// rest says that the table may be out of date from now on.
func (s *Set) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready.Load() {
		s.ready.Store(false)
		s.addAsked(1)
	}
}

// addAsked changes what makes calls look further. The set must be locked.
func (s *Set) addAsked(n int64) {
	s.asked.Add(n)
	for _, r := range s.rules {
		r.asked.Add(n)
	}
}

// Load reads all marks, unless that was done before.
func (s *Set) Load(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	return s.Read(ctx)
}

// put puts a mark into the table, unless a newer one is there.
func (s *Set) put(m *Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(m)
}

// putLocked is put. The set must be locked.
func (s *Set) putLocked(m *Mark) {
	r := s.rule(m.Rule)
	m.Rule = r.name // a text that all marks share
	e := r.subjects.add(m.Subject)
	place := e.of(m.isBan())
	before := place.Load()
	if there := before.confirmed(); !m.unconfirmed && there != nil && there.number >= m.number {
		if there.number == m.number {
			if place.found = s.reading; m.ends < before.ends && !before.unconfirmed { // the machine was suspended
				place.Store(m)
			}
			return
		}
		if !s.takes || place.found == s.reading {
			return
		}
	}
	if !m.unconfirmed {
		place.found = s.reading
	}
	if network, ok := Network(m.Subject); ok && !m.isByRule() {
		r.networks.add(network)
	}
	place.Store(m)
	if before == nil {
		s.asked.Add(1)
		r.asked.Add(1)
		if s.count++; s.count >= s.nextSweep {
			s.sweep()
		}
	}
}

// drop removes a mark from the table, unless a newer one has taken its place.
func (s *Set) drop(m *Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rule(m.Rule)
	if e := r.subjects.find([]byte(m.Subject)); e != nil {
		place := e.of(m.isBan())
		if there := place.Load().confirmed(); there != nil && there.number <= m.number {
			s.forget(r, place)
		}
	}
}

// beginReading says that all marks are read from now on. With keep, what is newer in the table stays.
func (s *Set) beginReading(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading++
	s.takes = !keep
}

// endReading removes the marks that were not found since beginReading. With keep, those that have not
// ended stay, and are returned.
func (s *Set) endReading(keep bool) (missing []*Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = false
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range e.places() {
				m := place.Load().confirmed()
				switch {
				case m == nil || place.found == s.reading:
				case keep && m.ends > now:
					missing = append(missing, m)
				default:
					s.forget(r, place)
				}
			}
		}
	}
	return missing
}

// isMissing reports whether a mark that endReading returned is still the one in the table, and was not
// found in Redis since.
func (s *Set) isMissing(m *Mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.rule(m.Rule).subjects.find([]byte(m.Subject))
	if e == nil {
		return false
	}
	place := e.of(m.isBan())
	return place.found < s.reading && place.Load().confirmed() == m && m.ends > s.Now()
}

// forget removes the confirmed mark of a place. The set must be locked.
func (s *Set) forget(r *Rule, place *place) {
	if m := place.Load(); m.unconfirmed {
		u := *m
		u.before = nil
		place.Store(&u)
	} else {
		s.clear(r, place)
	}
}

// clear empties a place that has a mark. The set must be locked.
func (s *Set) clear(r *Rule, place *place) {
	place.Store(nil)
	s.asked.Add(-1)
	r.asked.Add(-1)
	s.count--
}

// minSweep is the smallest number of marks at which those that have ended are removed.
const minSweep = 1_000

// sweep removes the marks that have ended. The set must be locked.
func (s *Set) sweep() {
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range e.places() {
				if m := place.Load(); m != nil && m.ends <= now && (m.before == nil || m.before.ends <= now) {
					s.clear(r, place)
				}
			}
		}
	}
	s.nextSweep = max(minSweep, 2*s.count)
}

// All returns all marks that this process knows and that hold now, in no order.
func (s *Set) All() (all []*Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			f := e.found(now)
			all = append(all, f.ban, f.other)
		}
	}
	return slices.DeleteFunc(all, func(m *Mark) bool { return m == nil })
}
