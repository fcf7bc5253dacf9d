package rulefile

import (
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/rulefile/internal/filewatch"
)

// Watch is like [Load], and then follows the files until [Set.Close]. When their contents have
// changed and then stayed the same for half a second, the guards of the Set use the new rules, as
// after [Set.Reload]. While files are missing or wrong, the current rules stay in force; each error
// is logged once, and the Limiter's Stats show it.
//
// Files, folders and the targets of links can be written in place, replaced, removed and made
// again. Files that appear in a folder are read too. A change is noticed at once if the
// operating system reports it, and otherwise within ten seconds, as on network file systems.
//
// If writing a file takes more than half a second, the part that is written is used if it is
// correct, as the first half of a YAML file can be. To be safe, write a new file and rename it. To
// change several files together, replace a link to their folder, as Kubernetes does in a ConfigMap.
func Watch(limiter *core.Limiter, functions Functions, paths ...string) (*Set, error) {
	return watch(limiter, functions, paths, filewatch.Config{})
}

// watch is Watch with a given configuration.
func watch(limiter *core.Limiter, functions Functions, paths []string, c filewatch.Config) (*Set, error) {
	first := readNow(paths)
	s, err := loadFirst(limiter, functions, paths, first.replay)
	if err != nil {
		return nil, err
	}
	s.tried = first.digest()
	c.Paths, c.Used, c.Changed = s.paths, s.lastTried, s.takeUp
	c.Look = func() (files []string, digest string) {
		now := readNow(s.paths)
		return now.wrong.files, now.digest()
	}
	every := c.Poll
	if every == 0 {
		every = filewatch.Poll
	}
	c.Degraded = func(err error) {
		s.inBackground(func() { s.inside().ReportPolled(err, every) })
	}
	c.Panicked = s.panicked
	s.stop = filewatch.Start(c).Close
	return s, nil
}

// lastTried returns the digest of what was last used or found wrong.
func (s *Set) lastTried() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// takeUp uses the current contents of the files, if they are still what the watcher has seen.
// Reload may have read the files in the meantime.
func (s *Set) takeUp(seen string) {
	if s.useSeen(seen) {
		s.inBackground(s.logs.write)
	}
}

// useSeen reports whether it used the files, or found them wrong.
func (s *Set) useSeen(seen string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := readNow(s.paths)
	if seen == s.tried || seen != now.digest() {
		return false
	}
	_ = s.use(now) // reports the error
	return true
}
