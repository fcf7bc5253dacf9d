package outgoing

import "sync"

// lines are lines in which calls of this process wait, by their keys.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

// line is a line of calls with one key. The call that has sent to head is the first.
type line struct {
	calls int
	head  chan struct{}
	freed chan struct{} // wakes the first call
}

// next lets the next call be the first.
func (l *line) next() { <-l.head }

// join returns the line of a key with one call more. If there is none, it makes one, or returns nil.
func (l *lines) join(key string, begin bool) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.byKey[key]
	switch {
	case of == nil && !begin:
		return nil
	case of == nil:
		if l.byKey == nil {
			l.byKey = make(map[string]*line)
		}
		of = &line{head: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		l.byKey[key] = of
	}
	of.calls++
	return of
}

// leave removes a call from the line of a key.
func (l *lines) leave(key string, of *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.calls--; of.calls == 0 {
		delete(l.byKey, key)
	}
}

// wake lets the first call in the line of a key ask for a slot now.
func (l *lines) wake(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.byKey[key]; of != nil {
		select {
		case of.freed <- struct{}{}:
		default:
		}
	}
}
