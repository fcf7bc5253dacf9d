package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// noteRefusal notes for Top that the limit at i refused the call or, if its rule is lenient, would
// have refused it.
func (c *call) noteRefusal(i int) {
	if v := &c.verdicts[i]; v.RetryAfter == 0 || v.Err != nil {
		return
	}
	a := &c.limits[i]
	top := a.named.tally.Top
	if weight := top.Weight(toplist.Refused, c.id); weight > 0 {
		top.NoteRefusal(weight, c.subjects[a.from:a.to])
	}
}

// noteNear notes for Top the largest share in use among a rule's limits. The rule is that of the
// limit at i.
func (c *call) noteNear(i int) {
	a := &c.limits[i]
	top := a.named.tally.Top
	if top.Weight(toplist.Near, c.id) == 0 {
		return
	}
	most := 0.0
	for j := range c.limits {
		if (i == j || c.sameRule(i, j)) && !c.limits[j].isBan && isNear(&c.counters[j], &c.verdicts[j]) {
			most = max(most, shareInUse(&c.counters[j], &c.verdicts[j]))
		}
	}
	top.NoteUse(most, c.subjects[a.from:a.to])
}

// noteRefusal notes for Top that a limit of the handle refused the call, if it did.
func (c *directCall) noteRefusal(q *handleCall, binding int) {
	if v := &c.verdicts[binding]; v.RetryAfter > 0 && v.Err == nil {
		q.noteRefusal(c.id, q.subject)
	}
}

// noteNear notes for Top the largest share in use among the limits of the handle.
func (c *directCall) noteNear(q *handleCall) {
	most := 0.0
	for i := range c.counters {
		if isNear(&c.counters[i], &c.verdicts[i]) {
			most = max(most, shareInUse(&c.counters[i], &c.verdicts[i]))
		}
	}
	q.noteUse(c.id, q.subject, most)
}

func (h *handle) noteRefusal(id uint64, subject string) {
	if weight := h.tally.Top.Weight(toplist.Refused, id); weight > 0 {
		h.tally.Top.NoteRefusal(weight, []byte(subject))
	}
}

func (h *handle) noteUse(id uint64, subject string, share float64) {
	if h.tally.Top.Weight(toplist.Near, id) > 0 {
		h.tally.Top.NoteUse(share, []byte(subject))
	}
}

// shareInUse returns how much of a limit is in use, from 0 to 1.
func shareInUse(c *algorithm.Counter, v *algorithm.Verdict) float64 {
	return float64(c.Limit.Max-v.Remaining) / float64(c.Limit.Max)
}
