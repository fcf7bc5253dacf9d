package operatorlog

import (
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// interval is the shortest time between two messages about one subject.
	interval = time.Minute
	// maxSubjects bounds the rules, servers or kinds of errors for which one message is written.
	maxSubjects = 100
)

// throttle writes a message at most once a minute for each subject: the first time immediately, and
// then after each minute, with the number of times since. Subjects beyond maxSubjects share one
// minute.
type throttle struct {
	mu       sync.Mutex
	subjects map[string]*subject
	closed   bool
}

// subject is what a message is written about.
type subject struct {
	about   string
	times   int             // times that the message applied since it was last written
	write   func(times int) // the latest
	timer   *time.Timer     // set for a minute after the message was written
	written bool            // at least once
}

// log writes a message now, or when the subject's minute is over.
func (t *throttle) log(about string, write func(times int)) {
	if times := t.count(about, write); times > 0 {
		write(times)
	}
}

// count counts a message. If the message must be written now, count returns the number of times
// that it applied, otherwise 0.
func (t *throttle) count(about string, write func(times int)) (times int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.subjects[about]
	if s == nil && len(t.subjects) >= maxSubjects {
		about = ""
		s = t.subjects[about]
	}
	if s == nil {
		if t.subjects == nil {
			t.subjects = make(map[string]*subject)
		}
		s = &subject{about: strings.Clone(about)} // a framework may have lent the text for one call
		t.subjects[s.about] = s
	}
	s.times, s.write = s.times+1, write
	if s.timer != nil || t.closed && s.written { // no timer runs any more, so write each message only once
		return 0
	}
	return t.take(s)
}

// take returns the number of times, and starts another minute unless it is 0.
func (t *throttle) take(s *subject) (times int) {
	times, s.times, s.timer = s.times, 0, nil
	s.written = s.written || times > 0
	if times > 0 && !t.closed {
		s.timer = time.AfterFunc(interval, panics.Guard(func() { t.endMinute(s) }, dropPanic))
	}
	return times
}

func (t *throttle) endMinute(s *subject) {
	t.mu.Lock()
	times, write := t.take(s), s.write
	if times == 0 && !t.closed { // free the entry of a subject that is no longer active
		delete(t.subjects, s.about)
	}
	t.mu.Unlock()
	if times > 0 {
		write(times)
	}
}

// dropPanic drops a panic of the log's own handler, because there is nobody else to tell.
func dropPanic(error) {}

// close writes the messages that wait for the end of their minute.
func (t *throttle) close() {
	t.mu.Lock()
	t.closed = true
	var waiting []*subject
	for _, s := range t.subjects {
		if s.timer != nil && s.timer.Stop() {
			waiting = append(waiting, s)
		}
	}
	t.mu.Unlock()
	for _, s := range waiting {
		t.endMinute(s)
	}
}

// once lets one message pass for each subject, because it is about the setup of a service, which
// only a restart changes. Callers may cause new subjects, so their number is bounded.
type once struct {
	written cowmap.Map[string, *byte]
}

// first reports whether the subject is new.
func (o *once) first(about string) bool {
	if _, ok := o.written.Get(about); ok {
		return false
	}
	mine := new(byte)
	stored, ok := o.written.Add(strings.Clone(about), mine, maxSubjects)
	return ok && stored == mine
}
