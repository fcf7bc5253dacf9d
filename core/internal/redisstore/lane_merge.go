package redisstore

import (
	"bytes"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// group holds calls of a pipeline that ask for the same and are merged into one script call.
type group struct {
	scriptCall
	joins    bool // it may be decided together with groups for other keys
	finished bool // it has an answer or an error
	answer   scriptReply
	err      error
}

// finish ends a group with an error, or with the reply to a script of its own.
func (g *group) finish(err error) {
	if err == nil {
		g.answer, err = g.reply()
	}
	g.finished, g.err = true, err
}

// groupCalls groups the pipeline's calls that can be merged, in the order in which they came.
func (p *pipeline) groupCalls() {
	size := 8
	for size < 2*len(p.calls) {
		size *= 2
	}
	if cap(p.table) < size {
		p.table = make([]int32, size)
	}
	p.table = p.table[:size]
	clear(p.table)
	clear(p.groups)
	p.groups = p.groups[:0]
	for _, c := range p.calls {
		c.group = p.groupOf(&c.request)
		g := &p.groups[c.group]
		c.ahead = g.op.Calls
		g.op.Calls += c.op.Calls
	}
}

// groupOf returns the index of the group for a request, which may be a new one without calls.
func (p *pipeline) groupOf(r *request) int {
	if r.canMerge() {
		at := int(r.hash >> 32 % uint64(len(p.table))) // the lowest bits are the lane's
		for ; p.table[at] != 0; at = (at + 1) % len(p.table) {
			i := int(p.table[at] - 1)
			if p.groups[i].equals(r) {
				return i
			}
		}
		p.table[at] = int32(len(p.groups) + 1)
	}
	p.groups = append(p.groups, group{})
	g := &p.groups[len(p.groups)-1]
	g.request = *r
	g.op.Calls = 0
	return len(p.groups) - 1
}

// canMerge reports whether the request can be decided together with others that ask for the same.
func (r *request) canMerge() bool {
	for i := range r.op.Counters {
		if !r.op.Counters[i].Merges() {
			return false
		}
	}
	return r.op.Mode == algorithm.AllOrNone && r.op.Recorded() == nil
}

// equals reports whether two requests that can be merged ask for the same.
func (r *request) equals(other *request) bool {
	if r.hash != other.hash || len(r.op.Counters) != len(other.op.Counters) {
		return false
	}
	for i := range r.op.Counters {
		a, b := &r.op.Counters[i], &other.op.Counters[i]
		if a.Cost != b.Cost || !bytes.Equal(a.Key, b.Key) || !a.Limit.Equal(b.Limit) {
			return false
		}
	}
	return true
}
