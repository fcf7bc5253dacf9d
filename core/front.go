package core

import (
	"github.com/accesslimit/accesslimit/core/internal/service"
)

// front is what a limiter has in the terms of this package. What needs none of them is in its
// service.Parts, where the packages beside this one reach it too.
type front struct {
	*service.Parts
	callParts
	calls    callPool
	directs  directPool
	registry registry
}

// front returns the front of a limiter, or nil if New did not make it.
func (l *Limiter) front() *front {
	f, _ := (*service.Limiter)(l).Front().(*front)
	return f
}

// mustFront returns the front of a limiter. It panics if New did not make it.
func (l *Limiter) mustFront() *front {
	f := l.front()
	if f == nil {
		panic(errNoLimiter)
	}
	return f
}

// Obeying implements service.Front.
func (f *front) Obeying() (banned, overridden []string) { return f.registry.names.Obeying() }

// CheckSubject implements service.Front.
func (f *front) CheckSubject(name, subject string) error { return checkSubject(name, subject) }

// Failed implements service.Front.
func (f *front) Failed(name string, err error) error { return f.failures.errorOf(name, err) }

// IgnoresBans implements service.Front.
func (f *front) IgnoresBans(name string) bool { return f.registry.names.IgnoresBans(name) }

// BanAfter implements service.Front.
func (f *front) BanAfter(name string) int { return f.registry.names.BanAfter(name) }
