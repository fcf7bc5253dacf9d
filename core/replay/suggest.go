package replay

import (
	"math"
	"slices"
	"sort"

	"github.com/accesslimit/accesslimit/core"
)

// peaks finds, in the same pass, how much of each limit each subject would have used at most if the
// limit were as large as a limit can be.
//
// That tells for every size of the limit which subjects it would have refused. Until a subject is
// refused for the first time, all its calls pass, so its use is the same under every size. The first
// refusal comes when the use would exceed the size. So a size refuses a subject if, and only if, it is
// below the subject's peak. Of a TokenBucket, the size is the burst: with another rate, the use would
// be another. No search is needed, and standard input, which can be read only once, is enough.
type peaks struct {
	limits *limits
	rules  []*rulePeaks
}

// rulePeaks are the peaks of one rule.
type rulePeaks struct {
	name   string
	limits []limitPeaks
}

// limitPeaks are the peaks of the subjects of one limit.
type limitPeaks struct {
	own   core.Limit
	large core.Limit // the limit that counts in its place
	most  map[string]int
}

// newPeaks returns the peaks of the options' rules. Each rule counts by itself, because a refusal by
// one must not lower the use of another.
func newPeaks(options *Options) (p *peaks, err error) {
	p = &peaks{limits: new(limits)}
	var counting *rulePeaks // the rule whose Guard is asked
	l := p.limits
	if err = l.newLimiter(options, func(e core.Event) { counting.decided(&e.Decision) }); err != nil {
		return nil, err
	}
	for _, g := range options.Guards {
		for _, r := range g.Rules {
			of := &rulePeaks{name: r.Name}
			p.rules = append(p.rules, of)
			if err := l.attach(g, of.counter(r, &l.view, func() { counting = of })); err != nil {
				l.close()
				return nil, err
			}
		}
	}
	return p, nil
}

// counter returns a rule that counts the same calls by large limits. It leaves out the calls with a
// limit of their own, by a plan or by LimitFor. begin is called for each call.
func (p *rulePeaks) counter(r core.Rule, v *view, begin func()) core.Rule {
	given := r
	r.Limit = p.add(r.Limit)
	r.Also = slices.Clone(r.Also)
	for i := range r.Also {
		r.Also[i] = p.add(r.Also[i])
	}
	r.Mode, r.Ban, r.Warn, r.Plan, r.Plans, r.LimitFor, r.Lease = core.Enforce, core.Ban{}, nil, nil, nil, nil, 0
	r.Skip = func(q core.Request) bool {
		begin()
		return given.Skip != nil && given.Skip(q) || given.NeedLogin && v.call.User == "" || hasOwnLimit(q, &given)
	}
	return r
}

// hasOwnLimit reports whether another limit than the rule's holds for a call, by a plan or by LimitFor.
// If these fail, or what they return cannot be counted, the rule's limit holds.
func hasOwnLimit(q core.Request, r *core.Rule) bool {
	switch {
	case r.Plan != nil:
		name, err := r.Plan(q)
		_, known := r.Plans[name]
		return err == nil && known
	case r.LimitFor != nil:
		limit, err := r.LimitFor(q)
		return err == nil && limit != (core.Limit{}) && limit != r.Limit && takes(*r, limit)
	default:
		return false
	}
}

// takes reports whether a limit by LimitFor can hold in place of the rule's own. It must meet the same
// conditions as the limit of a plan.
func takes(r core.Rule, limit core.Limit) bool {
	r.Plans, r.LimitFor = map[string]core.Limit{"computed": limit}, nil
	r.Plan = func(core.Request) (string, error) { return "computed", nil }
	return len(r.Check(nil)) == 0
}

// add adds a limit of the rule, and returns the limit that counts in its place.
func (p *rulePeaks) add(own core.Limit) core.Limit {
	large := largest(own)
	p.limits = append(p.limits, limitPeaks{own, large, make(map[string]int)})
	return large
}

// largest returns the limit that counts in the same way and has the largest size.
func largest(l core.Limit) core.Limit {
	l = keptSlot(l)
	tooLarge := sort.Search(math.MaxInt32, func(size int) bool {
		r := core.Rule{Limit: withSize(l, size+1)}
		return len(r.Check(nil)) > 0
	})
	return withSize(l, max(1, tooLarge))
}

// withSize returns the limit with another size: the Max, or the burst of a bucket.
func withSize(l core.Limit, size int) core.Limit {
	if properties(l).Burst {
		l.Burst = size
	} else {
		l.Max = size
	}
	return l
}

// decided notes how much of the limits is in use after a call.
func (p *rulePeaks) decided(d *core.Decision) {
	if d.All == nil {
		p.used(d)
	}
	for i := range d.All {
		p.used(&d.All[i])
	}
}

// used notes how much of a limit is in use. A limit that refuses is too small to tell.
func (p *rulePeaks) used(d *core.Decision) {
	for i := range p.limits {
		l := &p.limits[i]
		if l.large != d.Limit || d.Key == "" {
			continue
		}
		used := atOnce(d.Limit) - d.Remaining
		if !d.Allowed {
			used = atOnce(d.Limit) + 1
		}
		if used > l.most[d.Key] {
			l.most[d.Key] = used
		}
	}
}

// suggest returns the smallest limit that refuses less than the rest of the percentage of its subjects.
func (l *limitPeaks) suggest(percent float64) *Suggestion {
	if len(l.most) == 0 {
		return nil
	}
	var most []int
	for _, used := range l.most {
		most = append(most, used)
	}
	slices.Sort(most)
	// Fewer subjects than this may be refused, and 1e-9 is less than any rounding error is worth.
	below := max(1, int(math.Ceil((100-percent)/100*float64(len(most))-1e-9)))
	size := max(1, most[len(most)-below])
	refused := len(most) - indexAbove(most, size)
	s := &Suggestion{Limit: l.own, Subjects: len(most), Refused: refused, RefusedNow: len(most) - indexAbove(most, atOnce(l.own))}
	if size <= atOnce(l.large) {
		s.Suggested = withSize(l.own, size)
	}
	return s
}

// indexAbove returns the index of the first of sorted numbers that is above a bound.
func indexAbove(sorted []int, bound int) int {
	i, _ := slices.BinarySearch(sorted, bound+1)
	return i
}
