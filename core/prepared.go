package core

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// prepared is what all direct calls of a name and a limit have in common.
type prepared struct {
	name     string
	limit    Limit
	compiled *algorithm.Limit
	keyTail  string // "" of what is not kept
	tally    *tally
	next     atomic.Pointer[prepared] // the same name with another limit
}

// preparedCalls keeps what was prepared, by name. It is bounded, because callers may choose names.
type preparedCalls struct {
	known readMostly[string, *prepared]
	mu    sync.Mutex // held to add to a name
}

const (
	maxPrepared = 1000
	// maxPreparedLimits is how many limits are kept under one name.
	maxPreparedLimits = 8
)

// prepare works out what a direct call asks for: once for all of them, or beyond the bounds into spare.
func (l *Limiter) prepare(name string, limit *Limit, spare *prepared) (*prepared, error) {
	first, _ := l.prepared.known.get(name)
	limits := 0
	for p := first; p != nil; p = p.next.Load() {
		if p.limit == *limit {
			return p, nil
		}
		limits++
	}
	compiled, err := l.compiled(name, *limit)
	if err != nil {
		return nil, err
	}
	tally := l.tallies.ofDirect(name)
	if limits >= maxPreparedLimits || limits == 0 && len(l.prepared.known.all()) >= maxPrepared {
		spare.limit, spare.compiled, spare.tally = limit.clone(), compiled, tally
		return spare, nil
	}
	name = strings.Clone(name)
	p := &prepared{name: name, limit: limit.clone(), compiled: compiled, keyTail: string(appendTail(nil, name, compiled)), tally: tally}
	l.prepared.keep(p)
	return p, nil
}

// keep keeps what was prepared behind the others of its name, while there is room.
func (p *preparedCalls) keep(made *prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, _ := p.known.add(made.name, made, maxPrepared)
	for range maxPreparedLimits - 1 {
		if of.limit == made.limit { // this one, or somebody else's who was faster
			return
		}
		next := of.next.Load()
		if next == nil {
			of.next.Store(made)
			return
		}
		of = next
	}
}
