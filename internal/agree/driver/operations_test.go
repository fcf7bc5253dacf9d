package driver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// operation is one thing that happens to a service. Each kind uses its numbers in its own way. It does
// not depend on what was answered before, so that others can be left out of a history.
type operation struct {
	id, kind    int
	wait        time.Duration // before it
	until       edge          // a further wait before it
	early       int           // by how many microseconds it comes before the edge
	process, of int
	subject, n  int
	ref         int // an earlier operation, or -1
	refKind     int
	choice      int
	span        time.Duration
}

func (o operation) String() string {
	text := fmt.Sprintf("%d %s", o.id, kinds[o.kind].name)
	if o.process > 0 {
		text += fmt.Sprintf(" process=%d", o.process)
	}
	if o.ref >= 0 {
		text += fmt.Sprintf(" %s=%d", kinds[o.refKind].name, o.ref)
	}
	return text + fmt.Sprintf(" of=%d subject=%d n=%d choice=%d span=%v", o.of, o.subject, o.n, o.choice, o.span)
}

// kind is a kind of operation.
type kind struct {
	name   string
	weight int
	refers string // the kinds of earlier operations that it refers to, or ""
	rare   bool   // most histories are without it
	do     func(h *history, p *process, o operation)
}

// plan draws the operations of a history. Each history has some kinds of operations more often than
// others, and some not at all, so that it gets deep.
func plan(r *rand.Rand, d *design, processes, length int) (all []operation) {
	weights, sum := make([]int, len(kinds)), 0
	for i, k := range kinds {
		if weights[i] = k.weight * r.IntN(4); k.rare && r.IntN(5) > 0 {
			weights[i] = 0
		}
		sum += weights[i]
	}
	weights[0], sum = weights[0]+10, sum+10
	counters, most := 1+r.IntN(len(d.counters)), pick(r, 3, 10, 100)
	for id := range length {
		o := operation{
			id: id, process: r.IntN(processes), of: r.IntN(counters), subject: r.IntN(4) % 3, n: 1 + r.IntN(1+r.IntN(most)),
			choice: r.IntN(1 << 20), span: d.wait(r), ref: -1,
		}
		if r.IntN(2) == 0 {
			o.wait = d.wait(r)
		} else if r.IntN(3) == 0 {
			o.until, o.early = pick(r, retry, reset), r.IntN(2)
		}
		at := r.IntN(sum)
		for at >= weights[o.kind] {
			at -= weights[o.kind]
			o.kind++
		}
		if o.ref = earlier(r, all, kinds[o.kind].refers); o.ref >= 0 {
			o.refKind = all[o.ref].kind
		}
		all = append(all, o)
	}
	return all
}

// wait draws how long to wait: often until about the end of a window, or a part of one.
func (d *design) wait(r *rand.Rand) time.Duration {
	span := pick(r, d.spans...)
	switch r.IntN(8) {
	case 0:
		return span
	case 1:
		return span + time.Microsecond
	case 2:
		return span - time.Microsecond
	case 3:
		return span/32 + time.Duration(r.IntN(3)-1)*time.Microsecond
	case 4:
		return span / 3
	case 5:
		return time.Duration(r.Int64N(int64(span))).Truncate(time.Microsecond)
	default:
		return time.Duration(r.IntN(1000)) * time.Microsecond
	}
}

// earlier draws an earlier operation of one of the kinds, mostly a late one, or -1.
func earlier(r *rand.Rand, all []operation, refers string) int {
	for range 8 {
		if refers == "" || len(all) == 0 {
			break
		}
		at := len(all) - 1 - r.IntN(min(len(all), 20))
		if strings.Contains(refers, " "+kinds[all[at].kind].name+" ") {
			return at
		}
	}
	return -1
}

func subject(n int) string { return [...]string{"user:alice", "user:bob", "ip:203.0.113.7"}[n%3] }
