package rulefile

import (
	"sync"
)

// logs holds lines to be logged later, when no lock is held, because the handler of the log may
// call the Set.
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
