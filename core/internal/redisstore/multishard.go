package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// decideOnShards decides counters that lie on several shards. It asks them at the same time, and
// gives back what was charged if the call is refused as a whole. Until then, its permits are unavailable to
// everyone who shares the counter. The counters of soft rules on shards of their own are asked last, when it
// is known whether the call passes.
//
// ctx is the caller's context, or one derived from it that ends earlier.
func (s *Store) decideOnShards(caller, ctx context.Context, op *algorithm.Op) {
	start, parts := time.Now(), splitByTag(op.Counters)
	asked := parts
	if first := partsWhere(parts, func(p *shardPart) bool { return !p.isBehind() }); op.Charges() && len(first) > 0 {
		asked = first
	}
	s.decideParts(caller, ctx, asked, op.Mode)
	if len(asked) < len(parts) {
		s.askBehind(caller, ctx, start, parts, !slices.ContainsFunc(asked, (*shardPart).refuses))
	}
	for n, p := range parts {
		p.copyVerdicts(op.Verdicts, uint8(n))
	}
	if op.Charges() && slices.ContainsFunc(parts, (*shardPart).refuses) {
		s.giveBackParts(parts, op.Verdicts)
	}
}

// askBehind asks the parts behind the others, within the time of a call that began at start. They are
// charged if it passes.
func (s *Store) askBehind(caller, ctx context.Context, start time.Time, parts []*shardPart, passes bool) {
	rest, cancel := context.WithDeadline(ctx, start.Add(s.timeout))
	defer cancel()
	mode := algorithm.Looks
	if passes {
		mode = algorithm.AllOrNone
	}
	s.decideParts(caller, rest, partsWhere(parts, (*shardPart).isBehind), mode)
}

// decideParts asks the shards of these parts at the same time.
func (s *Store) decideParts(caller, ctx context.Context, parts []*shardPart, mode algorithm.Mode) {
	failed := s.sideBySide(len(parts), func(i int) error {
		op := algorithm.Op{Mode: mode, Counters: parts[i].counters, Calls: 1}
		s.decideOnShard(caller, ctx, s.newRequest(op), parts[i].verdicts)
		return nil
	})
	for i, err := range failed {
		if err != nil {
			s.failVerdicts(caller, err, parts[i].verdicts)
		}
	}
}

// sideBySide runs a function n times concurrently, one of them in this goroutine. It returns their
// errors, with panics among them.
func (s *Store) sideBySide(n int, do func(i int) error) (failed []error) {
	failed = make([]error, n)
	run := func(i int) { failed[i] = s.call(func() error { return do(i) }) }
	var others sync.WaitGroup
	for i := 1; i < n; i++ {
		others.Go(panics.Guard(func() { run(i) }, s.reportPanic))
	}
	if n > 0 {
		run(0)
	}
	others.Wait()
	return failed
}

// giveBackParts gives back the charges of a refused call, and changes the verdicts accordingly.
func (s *Store) giveBackParts(parts []*shardPart, verdicts []algorithm.Verdict) {
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// This is best effort. A charge that cannot be given back costs the caller a permit,
			// but never admits a call.
			s.giveBack(charges)
			p.showGivenBack(verdicts)
		}
	}
}

// splitByKey splits a change by the hash tags of its keys.
func splitByKey(c *algorithm.Change) (parts []algorithm.Change) {
	if len(c.Charges) == 0 {
		return []algorithm.Change{*c}
	}
	indexes := make(map[string]int)
	for _, charge := range c.Charges {
		i, ok := indexes[string(hashTag(charge.Key))]
		if !ok {
			i = len(parts)
			indexes[string(hashTag(charge.Key))] = i
			parts = append(parts, *c)
			parts[i].Charges = nil
		}
		parts[i].Charges = append(parts[i].Charges, charge)
	}
	return parts
}
