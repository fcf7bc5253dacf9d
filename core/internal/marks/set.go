package marks

import (
	"context"
	"errors"
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
	// MostBans is how many bans by rules are new in a second at most, because each process reads each of
	// them. The others wait for the next seconds, and limits refuse alone meanwhile.
	MostBans = 100
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
	// SinceEpoch is the clock if Redis is nil, in microseconds since the epoch.
	SinceEpoch func() int64
	// Compile prepares the Limits of a mark for readers. It is nil if they need nothing.
	Compile func(limits string) (any, error)
	Log     Log
	// Calls returns how many calls Redis has decided so far.
	Calls func() uint64
	// Most is the largest number of marks: [Most], except in tests.
	Most int
	// MostBans is how many bans by rules are new in a second of Redis at most: [MostBans], except in tests.
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
	// noRoom says until when rules' bans that end no later than its ends need not look for room, without Redis.
	noRoom  struct{ until, ends int64 }
	reading int  // the number of the last reading of all marks
	takes   bool // marks that are read take the place of newer ones, because the table is out of date
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
