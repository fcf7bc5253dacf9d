package rulefile

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// Set holds the rules that were loaded together, on a Limiter. Its guards follow it: [Set.Reload]
// gives them the rules that the files have now. Make one with [Load] or [Watch] when the service
// starts. It is safe for concurrent use.
type Set struct {
	limiter   *core.Limiter
	functions Functions
	paths     []string
	follows   string // the prefix of a document, or ""
	unaudited bool
	rules     *core.RuleSet
	mu        sync.Mutex // held while rules are replaced
	present   atomic.Pointer[loaded]
	tried     string       // the digest of the files that were last used or found wrong
	reload    func() error // looks at the document again; nil if there is none
	logs      logs         // is written when no lock is held
	closed    chan struct{}
	stop      func() // ends what runs in the background; nil if nothing does
	closing   sync.Once
}

// Load reads the rules of files and folders, for this Limiter. A folder stands for the files
// *.yaml, *.yml and *.json directly in it, except hidden ones.
//
// If anything is wrong, there is no Set. The error joins an [*Error] for each mistake, at most 100,
// sorted by place. Nothing is claimed on the Limiter until [Set.Guard].
func Load(limiter *core.Limiter, functions Functions, paths ...string) (*Set, error) {
	return loadFirst(limiter, functions, paths, func(wrong *problems) []source { return readAll(paths, wrong) })
}

// loadFirst makes a Set from what read returns.
func loadFirst(limiter *core.Limiter, functions Functions, paths []string, read func(*problems) []source) (*Set, error) {
	if err := functions.check(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errNoFiles
	}
	first, err := loadSources(limiter, functions, read)
	if err != nil {
		return nil, err
	}
	return newSet(limiter, functions, paths, first)
}

// newSet returns a Set with its first rules, or without any yet if first is nil.
func newSet(limiter *core.Limiter, functions Functions, paths []string, first *loaded) (*Set, error) {
	rules, err := limiter.RuleSet()
	if err != nil {
		return nil, err
	}
	s := &Set{limiter: limiter, functions: functions.clone(), paths: slices.Clone(paths), rules: rules, closed: make(chan struct{})}
	s.present.Store(&loaded{})
	if first == nil {
		return s, nil
	}
	defer s.logs.write()
	if err := s.replace(first); err != nil {
		return nil, err
	}
	return s, nil
}

// Names returns the names of the rules, sorted.
func (s *Set) Names() []string { return s.present.Load().names() }

// Version returns the version in force. For files it is the beginning of a hash of their contents,
// so files with the same contents in the same order have the same version in every process. For a
// document it is the number and the time of its version, such as 7@2026-11-22T16:00:00.123456Z. For
// a fallback it is "fallback-" and the hash of its files; rules in Go are not part of the hash.
func (s *Set) Version() string { return s.present.Load().version }

// Rule returns a copy of a rule, for functions that take a [core.Rule], and whether there is one.
func (s *Set) Rule(name string) (core.Rule, bool) {
	placed, ok := s.present.Load().rules[name]
	if !ok {
		return core.Rule{}, false
	}
	return rulefield.Clone(placed.Rule), true
}

// Guard returns a Guard of the rules of these names, on the Limiter of the Set. The adapters' With
// attaches it. Several rules are decided together, all charged or none. The Guard follows the Set.
// It is an error if there is no rule of a name, or if a name stands for another limit on the
// Limiter already.
func (s *Set) Guard(names ...string) (*core.Guard, error) {
	return attached(s, s.rules.Guard, names)
}

// MustGuard is like [Set.Guard] but panics if there is an error.
func (s *Set) MustGuard(names ...string) *core.Guard { return orPanic(s.Guard(names...)) }

// Check returns a [core.Check] of the rules of these names, for handlers. It follows the Set. Its
// errors are those of [Set.Guard] and [core.Limiter.Check].
func (s *Set) Check(names ...string) (*core.Check, error) {
	return attached(s, s.rules.Check, names)
}

// MustCheck is like [Set.Check] but panics if there is an error.
func (s *Set) MustCheck(names ...string) *core.Check { return orPanic(s.Check(names...)) }

// attached returns the result of attach for the rules with these names. It holds no lock, because
// attach may log.
func attached[T any](s *Set, attach func(...string) (T, error), names []string) (of T, err error) {
	present := s.present.Load()
	for _, name := range names {
		if _, ok := present.rules[name]; !ok {
			return of, fmt.Errorf("rulefile: no rule %s%s in %s; the rules there: %s",
				quote(name), didYouMean(name, present.names()), present.source(), list(present.names()))
		}
	}
	of, err = attach(names...)
	return of, present.placed(err, nil)
}

func orPanic[T any](of T, err error) T {
	if err != nil {
		panic(err)
	}
	return of
}

// Diff returns what would change for callers if the rules of next replaced the rules of this Set,
// in the order of the rules' names. It applies nothing:
//
//	next, err := rulefile.Load(limiter, functions, "limits.yaml")
//	...
//	for _, change := range set.Diff(next) {
//		fmt.Println(change)
//	}
//	err = set.Reload()
//
// A counter that would start empty may still hold the use of an even earlier version that had the
// same counter, until its window is over.
func (s *Set) Diff(next *Set) []Change { return s.present.Load().diff(next.present.Load()) }

// Reload reads the files again, or the document that the Set follows. If they are correct, the
// guards of the Set use the new rules: see [core.RuleSet.Replace] for the effect on the counters.
// Otherwise the current rules stay in force. The error, as [Load] returns it, is logged once, and
// the Limiter's Stats show it until the next success.
func (s *Set) Reload() error {
	if s.reload != nil {
		return s.reload()
	}
	defer s.logs.write()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(readNow(s.paths))
}

// Close ends what the Set does in the background. Its guards keep their rules. Close waits for a
// change of rules that is under way, and there is none afterwards. Closing twice is allowed.
func (s *Set) Close() {
	s.closing.Do(func() {
		close(s.closed)
		if s.stop != nil {
			s.stop()
		}
	})
}

// use replaces the rules by those of the files. If those are wrong, it reports the error, and the
// current rules stay.
func (s *Set) use(now *reading) error {
	s.tried = now.digest()
	next, err := loadSources(s.limiter, s.functions, now.replay)
	if err == nil {
		err = s.replace(next)
	}
	if err != nil {
		s.report(err)
	}
	return err
}

// panicked reports a panic that was caught.
func (s *Set) panicked(err error) { s.inside().ReportPanic(err) }

// inside returns the internal methods of the RuleSet.
func (s *Set) inside() ruleorigin.Set[core.Rule] {
	return (*ruleorigin.RuleSet[core.Rule])(s.rules).Inside()
}

// report reports an error, or nil. The caller writes the log.
func (s *Set) report(err error) {
	s.logs.add(s.inside().ReportError(problemOf(err), err))
}

// replace replaces the rules, unless they are the same.
func (s *Set) replace(next *loaded) error {
	present := s.present.Load()
	if next.version == present.version { // perhaps in files with other names
		s.present.Store(next)
		s.report(nil)
		return nil
	}
	var rules []core.Rule
	for _, name := range next.names() {
		rules = append(rules, next.rules[name].Rule)
	}
	origin := ruleorigin.Origin{
		Place:    func(rule string) string { return next.rules[rule].place.String() },
		Key:      func(rule string) string { return next.rules[rule].texts["key"] },
		Document: s.follows, Digest: next.digest, Fallback: next.fallback,
		Author: next.document.Author, Note: next.document.Note,
		Changes: texts(present.diff(next)), Unaudited: s.unaudited,
	}
	log, err := s.inside().Replace(origin, next.version, rules)
	if err != nil {
		return next.placed(err, present)
	}
	s.logs.add(log)
	s.present.Store(next)
	return nil
}

// inBackground runs a function that writes into the log. Goroutines that Close waits for use it,
// because the handler of the log may call Close. It waits for the function until the Set is closed.
func (s *Set) inBackground(write func()) {
	written := make(chan struct{})
	go panics.Guard(func() {
		defer close(written)
		write()
	}, s.panicked)()
	select {
	case <-written:
	case <-s.closed:
	}
}
