package rulefile

import (
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// logs holds lines that are still to be logged. They are logged when no lock is held, because the
// handler of the log may call the Set.
type logs struct {
	mu    sync.Mutex
	lines []func()
}

// add adds a line.
func (l *logs) add(line func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// any reports whether there are lines.
func (l *logs) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) > 0
}

// write writes the lines.
func (l *logs) write() {
	l.mu.Lock()
	lines := l.lines
	l.lines = nil
	l.mu.Unlock()
	for _, line := range lines {
		line()
	}
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
