package replay

import (
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// tally counts what was decided, for each rule and each of its subjects.
type tally struct {
	rules    []*ruleTally // in the order of the Guards
	byName   map[string]*ruleTally
	receive  func(time.Time, core.Event)
	reported []*ruleTally // those that the present event is about
}

// ruleTally counts the calls that one rule decided.
type ruleTally struct {
	name     string
	rule     *core.Rule
	calls    int
	refused  int
	reasons  map[core.Reason]int
	subjects map[string]*subject
	nobody   subject // of calls that were refused before their subject was known
	times    minutes
	refusing bool // the present call was counted as refused
	needs    []need
	explored bool // the rule's functions have shown what they read
	ignored  int  // calls without a user, of a rule for users only
}

// subject is what is known of one subject of a rule.
type subject struct {
	calls, refused int
	most           float32 // the largest share of a limit that it used
}

func newTally(guards []Guard, receive func(time.Time, core.Event)) *tally {
	t := &tally{byName: make(map[string]*ruleTally), receive: receive}
	for i := range guards {
		for at := range guards[i].Rules {
			if r := &guards[i].Rules[at]; r.Name != "" {
				t.of(r.Name).rule = r
			}
		}
	}
	return t
}

// of returns the tally of a rule by the name that it counts by.
func (t *tally) of(name string) *ruleTally {
	r := t.byName[name]
	if r == nil {
		r = &ruleTally{name: name, reasons: make(map[core.Reason]int), subjects: make(map[string]*subject)}
		t.byName[name] = r
		t.rules = append(t.rules, r)
	}
	return r
}

// decided counts a decision. The first of several limits is the one that decided.
func (t *tally) decided(v *view, e core.Event) {
	d := &e.Decision
	if t.receive != nil {
		t.receive(time.UnixMicro(v.call.Began).UTC(), e)
	}
	if d.Source == core.FromNobody && d.Reason == core.Allowed {
		return // no limit applies, or rules that refuse nobody have reported by themselves
	}
	t.reported = t.reported[:0]
	t.count(v, d, !d.Allowed || exceeds(d))
	for i := 1; i < len(d.All); i++ {
		t.count(v, &d.All[i], exceeds(&d.All[i]))
	}
}

// exceeds reports whether a rule that refuses nobody would have refused the call.
func exceeds(d *core.Decision) bool {
	return d.Reason == core.SoftExceeded || d.Reason == core.DryRunExceeded
}

// count counts the decision of a rule by one of its limits. A call counts once for a rule.
func (t *tally) count(v *view, d *core.Decision, refused bool) {
	r := t.of(d.Rule)
	s := r.subject(d.Key)
	s.most = max(s.most, use(d))
	if !slices.Contains(t.reported, r) {
		t.reported = append(t.reported, r)
		r.calls++
		s.calls++
		r.refusing = false
		r.times.add(v.call.Began)
		r.countMissing(v)
	}
	if refused && !r.refusing {
		r.refusing = true
		r.refused++
		s.refused++
		r.times.refuse()
		r.reasons[d.Reason]++
	}
}

// subject returns what is known of a subject. A call that was refused before its subject was known has
// none.
func (r *ruleTally) subject(key string) *subject {
	if key == "" {
		return &r.nobody
	}
	s := r.subjects[key]
	if s == nil {
		s = new(subject)
		r.subjects[key] = s
	}
	return s
}

// use returns the share of a limit that is in use after a decision.
func use(d *core.Decision) float32 {
	most := atOnce(d.Limit)
	if most <= 0 {
		return 0
	}
	return float32(most-d.Remaining) / float32(most)
}

// atOnce returns how many permits of a limit can be used at one moment.
func atOnce(l core.Limit) int {
	if l.Burst != 0 {
		return l.Burst
	}
	return l.Max
}
