package redisstore

import (
	"bytes"
	"context"

	"github.com/redis/go-redis/v9"
)

// pipeline is the calls of a lane that leave together. Its room is used again by the next.
type pipeline struct {
	tickets []*ticket
	groups  []group
	table   []int32 // of the groups, by hash: the place of one, plus one
	cmds    []redis.Cmder
	todo    []int
	failed  error // errOpen if the last trip was not made

	answered, unknown bool // some call was answered; the server did not know a script
}

// group is the tickets that ask the same, which leave as one script call.
type group struct {
	asking
	first *ticket
	hash  uint64
	err   error
}

// run sends the tickets and waits for what is replied.
func (p *pipeline) run(s *shard, l *lane, tickets []*ticket) {
	p.tickets, p.answered, p.unknown = append(p.tickets[:0], tickets...), false, false
	p.sort()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	p.todo = p.todo[:0]
	for i := range p.groups {
		g := &p.groups[i]
		g.begin(g.first.counters, g.first.charge, g.calls)
		g.unsent = &l.unsent
		p.todo = append(p.todo, i)
	}
	for trips := 0; len(p.todo) > 0; trips++ {
		p.ask(ctx, s)
		s.trips.made(p.failed, trips, len(p.tickets), len(p.groups))
	}
	if p.answered {
		s.watch.hears(p.unknown)
	}
}

// ask sends what is still to be asked, in one trip.
func (p *pipeline) ask(ctx context.Context, s *shard) {
	p.cmds = p.cmds[:0]
	for _, i := range p.todo {
		p.cmds = append(p.cmds, p.groups[i].command(ctx))
	}
	if p.failed = s.pipes.pipe(ctx, p.cmds); p.failed != nil {
		for _, i := range p.todo {
			p.groups[i].err = p.failed
		}
		p.todo = nil
		return
	}
	again := p.todo[:0]
	for at, i := range p.todo {
		g := &p.groups[i]
		repeat, err := g.heed(p.cmds[at].Err())
		if g.err = err; repeat {
			again = append(again, i)
		}
		p.answered, p.unknown = p.answered || err == nil, p.unknown || g.unknown
	}
	p.todo = again
}

// sort groups the tickets that ask the same, in the order in which they came.
func (p *pipeline) sort() {
	size := 8
	for size < 2*len(p.tickets) {
		size *= 2
	}
	if cap(p.table) < size {
		p.table = make([]int32, size)
	}
	p.table = p.table[:size]
	clear(p.table)
	clear(p.groups)
	p.groups = p.groups[:0]
	for _, t := range p.tickets {
		g := p.groupOf(t)
		t.group, t.behind = int32(g), p.groups[g].calls
		p.groups[g].calls += t.calls
	}
}

// groupOf is the place of the group that a ticket belongs to.
func (p *pipeline) groupOf(t *ticket) int {
	at := int(t.hash >> 32 % uint64(len(p.table))) // the lowest bits say which lane, and are the same for all
	if t.merges() {
		for ; p.table[at] != 0; at = (at + 1) % len(p.table) {
			if g := &p.groups[p.table[at]-1]; g.hash == t.hash && g.first.asksLike(t) {
				return int(p.table[at] - 1)
			}
		}
		p.table[at] = int32(len(p.groups) + 1)
	}
	p.groups = append(p.groups, group{first: t, hash: t.hash})
	return len(p.groups) - 1
}

// merges says whether what the ticket asks can be decided together with others that ask the same.
func (t *ticket) merges() bool {
	for i := range t.counters {
		if !t.counters[i].AsOne() {
			return false
		}
	}
	return t.charge
}

// asksLike says whether two tickets that merge ask the same.
func (t *ticket) asksLike(other *ticket) bool {
	if len(t.counters) != len(other.counters) || !other.charge {
		return false
	}
	for i := range t.counters {
		a, b := &t.counters[i], &other.counters[i]
		if a.Cost != b.Cost || !bytes.Equal(a.Key, b.Key) || !a.Limit.Equal(b.Limit) {
			return false
		}
	}
	return true
}

// end hands out the answers.
func (p *pipeline) end() {
	for _, t := range p.tickets {
		g := &p.groups[t.group]
		if g.err != nil {
			t.end(g.err)
			continue
		}
		t.answer = g.answer()
		t.end(nil)
	}
	clear(p.tickets)
}
