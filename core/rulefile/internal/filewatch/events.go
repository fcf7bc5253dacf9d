package filewatch

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/fsnotify/fsnotify"
)

// events follows folders, and signals when something has happened in them that may matter.
type events struct {
	signal   chan struct{} // has room for one signal, which stands for any number of events
	open     func() (source, error)
	degraded func(error)
	panicked func(error)
	warn     sync.Once

	source  source                 // nil while there is none
	drained sync.WaitGroup         // for the goroutine that reads the source's events
	spots   atomic.Pointer[spots]  // what is followed
	known   map[string]os.FileInfo // the folders as they were when they were added
}

// source is where events come from.
type source interface {
	Add(folder string) error
	Remove(folder string) error
	WatchList() []string
	Close() error
	channels() (<-chan fsnotify.Event, <-chan error)
}

// fsnotifySource is the source of the operating system.
type fsnotifySource struct{ *fsnotify.Watcher }

func (s fsnotifySource) channels() (<-chan fsnotify.Event, <-chan error) { return s.Events, s.Errors }

func newSource() (source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err // for example because the user has too few inotify instances
	}
	return fsnotifySource{w}, nil
}

func newEvents(open func() (source, error), degraded, panicked func(error)) *events {
	return &events{
		signal: make(chan struct{}, 1), open: open, degraded: degraded, panicked: panicked, known: make(map[string]os.FileInfo),
	}
}

// follow follows the folders in which these paths can change, and no others. It reports whether a
// change may have been missed, because it came before its folder was followed. If a folder cannot
// be followed, the next call tries again.
func (e *events) follow(paths []string) (missed bool) {
	if e.source == nil && !e.start() {
		return false
	}
	spots := findSpots(paths)
	missed = !spots.equal(e.spots.Swap(spots))
	followed := e.source.WatchList() // a folder that was moved or removed is no longer in it
	for folder, was := range e.known {
		now, err := os.Stat(folder)
		if spots.has(folder) && err == nil && os.SameFile(was, now) && slices.Contains(followed, folder) {
			continue
		}
		_ = e.source.Remove(folder) // its last events may be lost
		delete(e.known, folder)
	}
	for folder := range spots.names {
		if e.known[folder] == nil {
			missed = e.add(folder) || missed
		}
	}
	return missed
}

// add follows one folder. It reports whether it succeeded, or the folder has just been removed.
func (e *events) add(folder string) bool {
	info, err := os.Stat(folder)
	if err == nil {
		err = e.source.Add(folder)
	}
	switch {
	case err == nil:
		e.known[folder] = info
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true
	}
	e.fail(err)
	return false
}

// start opens the source.
func (e *events) start() bool {
	source, err := e.open()
	if err != nil {
		e.fail(err)
		return false
	}
	e.source = source
	e.drained.Go(panics.Guard(func() { e.drain(source) }, e.panicked))
	return true
}

// drain turns events into signals. It runs in its own goroutine, because fsnotify can hold a lock
// while it waits for an error to be read, and Add and Remove wait for that lock.
func (e *events) drain(s source) {
	happened, failed := s.channels()
	for happened != nil || failed != nil {
		select {
		case event, ok := <-happened:
			if !ok {
				happened = nil
			} else if !e.spots.Load().matter(event.Name) {
				continue
			}
		case _, ok := <-failed: // events were lost
			if !ok {
				failed = nil
			}
		}
		select {
		case e.signal <- struct{}{}:
		default:
		}
	}
}

// fail reports the first failure.
func (e *events) fail(err error) {
	e.warn.Do(func() {
		if e.degraded != nil {
			e.degraded(explain(err))
		}
	})
}

func (e *events) close() {
	if e.source != nil {
		_ = e.source.Close()
		e.drained.Wait()
	}
}
