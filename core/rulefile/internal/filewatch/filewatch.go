// Package filewatch notices that files have changed, and waits until they have stayed the same for
// a moment.
//
// It looks at the files again after every event in their folders and, because some file systems
// have no events, every few seconds. It compares the contents, because times and sizes can stay
// the same while these change.
package filewatch

import (
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Config says what is watched. The Watcher calls all functions from one goroutine.
type Config struct {
	// Paths are files and folders, which need not exist. Links are followed.
	Paths []string
	// Look reads the files. It returns their paths, which are those of Paths or lie in folders of
	// Paths, and a digest of all that was read, errors included.
	Look func() (files []string, digest string)
	// Used returns the digest of what was read when the files were last used, or found to be wrong.
	Used func() string
	// Changed is called when the digest has been the same for Quiet and differs from Used. It is
	// called again after each Quiet, until that digest is used or another one is seen.
	Changed func(digest string)
	// Degraded is called once if events are not available, or not for every folder. Changes there
	// are then noticed only by polling.
	Degraded func(error)
	// Panicked is called with each panic of the other functions. Watching continues.
	Panicked func(error)
	// Poll is how often the files are looked at without any event. The default is 10 seconds.
	Poll time.Duration
	// Quiet is how long files must stay the same before they are used. The default is 500 ms.
	Quiet time.Duration

	newSource func() (source, error) // replaced in tests
}

// The defaults of Config. Reading a few kilobytes this often has no measurable cost.
const (
	Poll  = 10 * time.Second
	Quiet = 500 * time.Millisecond
)

// Watcher watches files until it is closed.
type Watcher struct {
	config Config
	events *events
	gap    time.Duration // the shortest time between two looks

	stop func()
	ends chan struct{}  // closed by stop
	done sync.WaitGroup // for the goroutine

	// seen is the latest digest that is not in use, or "". since is when it was first seen, or last
	// reported.
	seen  string
	since time.Time
}

// Start begins to watch. Changes are noticed even if they came before Start.
func Start(c Config) *Watcher {
	if c.Poll == 0 {
		c.Poll = Poll
	}
	if c.Quiet == 0 {
		c.Quiet = Quiet
	}
	if c.Panicked == nil {
		c.Panicked = panics.Log
	}
	if c.newSource == nil {
		c.newSource = newSource
	}
	w := &Watcher{
		config: c, events: newEvents(c.newSource, c.Degraded, c.Panicked), gap: c.Quiet / 10,
		ends: make(chan struct{}),
	}
	w.stop = sync.OnceFunc(func() { close(w.ends) })
	w.events.follow(c.Paths) // before the first look, which sees what came earlier
	w.done.Go(panics.Guard(w.run, c.Panicked))
	return w
}

// Close ends the watching. It waits for a call of Changed that is under way; there is none
// afterwards. Closing twice is allowed.
func (w *Watcher) Close() {
	w.stop()
	w.done.Wait()
}

// run looks at the files whenever it is time, until the Watcher is closed.
func (w *Watcher) run() {
	defer w.events.close()
	var looked, due time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.ends:
			return
		case <-w.events.signal:
			// Many events come at once, and one look is enough for all of them.
			if soon := looked.Add(w.gap); soon.Before(due) {
				due = soon
			}
		case <-timer.C:
			wait := w.config.Poll
			panics.Guard(func() { wait = w.look() }, w.config.Panicked)()
			looked = time.Now()
			due = looked.Add(wait)
		}
		timer.Reset(time.Until(due))
	}
}

// look reads the files once, and returns when to look again.
func (w *Watcher) look() (wait time.Duration) {
	files, digest := w.config.Look()
	wait = w.compare(digest, time.Now())
	if w.events.follow(slices.Concat(w.config.Paths, files)) {
		wait = min(wait, w.gap)
	}
	return wait
}

// compare compares what was read now with what was read before.
func (w *Watcher) compare(digest string, now time.Time) (wait time.Duration) {
	quiet, used := now.Sub(w.since), digest == w.config.Used()
	switch {
	case used:
	case digest != w.seen:
		w.seen, w.since = digest, now
		return w.config.Quiet
	case quiet < w.config.Quiet:
		return w.config.Quiet - quiet
	default:
		w.config.Changed(digest)
		used = digest == w.config.Used()
	}
	if used {
		w.seen = ""
		return w.config.Poll
	}
	w.since = now
	return w.config.Quiet
}
