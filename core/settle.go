package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
)

// Costs are permits by the names of rules with an [Rule].Estimate: what a call is estimated to use, or has used.
type Costs map[string]int

// Settle replaces the estimates that rules have charged by what the call has used in all. The handler calls
// Settle once, before it returns, also at the end of a stream:
//
//	used, err := answer(w, r)
//	if err == nil {
//		err = core.Settle(r.Context(), core.Costs{"tokens": used})
//	}
//
// The context is the request's own, as for [DecisionFrom], or for a [Check] that of
// [Check.WithEstimates]. Settle is carried out even if it has ended, because the caller has left, and
// takes no longer than Options.Timeout for each rule.
//
// If less was used than estimated, the rest is given back to all limits of the rule, as far as it still
// counts. If more was used, it is charged, whether it fits or not, as [Counter.Charge] does. The
// counters are those that were charged, whatever plan or override the caller has by now. A call that
// nobody settles stays at its estimate. One that does not count by [Rule].Count is given back as a
// whole. There is nothing to settle, and no error, if the rule did not count the call, for example
// because its Skip ignored it, its cost was 0, the caller is [Unlimited], or Redis did not answer. A rule
// in [DryRun] is settled in the background, without an error.
//
// Each rule is settled by itself. The error joins those of the rules that were not settled, and names them:
// a *[RuleError] if the call has no such rule, [ErrBillSettled] if it was settled before at another number,
// [ErrBillUnknown] if its reply has ended, [ErrDebtExceeded] if less could be charged than was used, or
// a *[StoreError]. To settle again at the same number changes nothing, and returns what it returned at first.
// So Settle can be repeated after a *[StoreError], for half a minute, and is carried out only once.
func Settle(ctx context.Context, used Costs) error {
	var failed []error
	for _, rule := range slices.Sorted(maps.Keys(used)) {
		if err := settleRule(ctx, rule, used[rule]); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// settleRule is Settle for one rule.
func settleRule(ctx context.Context, rule string, used int) error {
	if used < 0 {
		return wrongArgument(rule, "used", used, "must not be negative")
	}
	var others []string
	skipped := false
	for s := settleableIn(ctx); s != nil; s = s.outer {
		e, names := s.find(rule)
		skipped = skipped || s.skips(rule)
		tried := s.settleDryRuns(rule, used)
		switch {
		case e != nil:
			return s.settle(e, rule, used)
		case tried:
			return nil
		case skipped && s.check.settles(rule):
			return nil
		case s.check.settles(rule):
			return wrongArgument("", "rule", rule, "has charged nothing in this context: its Check has let no call pass")
		}
		others = append(others, names...)
	}
	if skipped {
		return nil
	}
	why := "is not settled in this context: pass that of a call with a rule of this name that has an Estimate"
	if len(others) > 0 {
		why = "is none of the rules of this call that can be settled: " + strings.Join(others, ", ")
	}
	return wrongArgument("", "rule", rule, why)
}

// settleable is a context in which Settle finds what a call was charged.
type settleable struct {
	context.Context
	outer *settleable // what is settled around it, or nil; found at once, because frameworks use some contexts again
	parts *callParts
	check *attachment // that of the Check that it was made for; nil for a middleware
	given Costs       // the estimates for the rules of the check, by their names

	mu      sync.Mutex
	charged []*inflight.Estimates // of a middleware, then of checks that let the call pass
	behind  []*inflight.Behind    // the same of rules in DryRun
	skipped []string              // names of rules whose Skip ignored the call
}

type settleableKey struct{}

// Value implements context.Context.
func (s *settleable) Value(key any) any {
	if key == (settleableKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// settleableIn returns the innermost settleable of a context, or nil.
func settleableIn(ctx context.Context) *settleable {
	s, _ := ctx.Value(settleableKey{}).(*settleable)
	return s
}

// add adds what a middleware or a check charged, in place of what the same rules charged before, and the
// names of rules that ignored the call. e is nil if none that refuses calls charged an estimate.
func (s *settleable) add(e *inflight.Estimates, behind []*inflight.Behind, skipped []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range behind {
		s.behind = slices.DeleteFunc(s.behind, func(former *inflight.Behind) bool { return slices.Equal(former.Rules(), b.Rules()) })
		s.behind = append(s.behind, b)
	}
	for _, rule := range skipped {
		if !slices.Contains(s.skipped, rule) {
			s.skipped = append(s.skipped, rule)
		}
	}
	if e == nil {
		return
	}
	s.charged = slices.DeleteFunc(s.charged, func(former *inflight.Estimates) bool { return slices.Equal(former.Rules(), e.Rules()) })
	s.charged = append(s.charged, e)
}

// find returns what was charged last for a rule of this name, or nil and the names of all others.
func (s *settleable) find(rule string) (e *inflight.Estimates, others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.charged) {
		names := e.Rules()
		if slices.Contains(names, rule) {
			return e, nil
		}
		others = append(others, names...)
	}
	return nil, others
}

// settleDryRuns settles rules in DryRun of this name in the background, and reports whether there are
// any. Nobody is told of an error.
func (s *settleable) settleDryRuns(rule string, used int) (any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.behind {
		if !slices.Contains(b.Rules(), rule) {
			continue
		}
		any = true
		b.Then(func() {
			if e := b.Estimates(); e != nil {
				_, err := e.Settle(context.Background(), rule, int64(used))
				_ = s.parts.failures.errorOf(rule, err)
			}
		})
	}
	return any
}

// skips reports whether a rule of this name ignored the call.
func (s *settleable) skips(rule string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.skipped, rule)
}

// settleableFor returns the innermost settleable of a context that was made for a check, or else the
// innermost one. It returns nil if there is none.
func settleableFor(ctx context.Context, check *attachment) *settleable {
	innermost := settleableIn(ctx)
	for s := innermost; s != nil; s = s.outer {
		if s.check == check {
			return s
		}
	}
	return innermost
}

// estimateFor returns the estimate that a context has for a rule of a check, or else cost. A report does
// not know of which check a rule is, and takes the rule's name for it: its check is nil.
func estimateFor(ctx context.Context, check *attachment, rule string, cost int) int {
	for s := settleableIn(ctx); s != nil; s = s.outer {
		if given, ok := s.given[rule]; ok && (check == nil || check == s.check) {
			return given
		}
	}
	return cost
}

// settle is settleRule for a rule that the call has.
func (s *settleable) settle(e *inflight.Estimates, rule string, used int) error {
	answer, err := e.Settle(s, rule, int64(used))
	switch {
	case errors.Is(err, inflight.ErrEnded):
		return fmt.Errorf("rule %q: %w: its estimate stays, because %v", rule, ErrBillUnknown, err)
	case err != nil:
		return fmt.Errorf("rule %q: %w", rule, s.parts.failures.errorOf(rule, err))
	case answer.Status == algorithm.BillSettled && answer.Used != int64(used):
		return fmt.Errorf("rule %q: %w, at %d", rule, ErrBillSettled, answer.Used)
	case answer.Above > 0:
		return fmt.Errorf("rule %q: %w", rule, errAbove(answer.Above))
	}
	return nil
}

// errAbove returns the error for a number of permits that were not charged, or nil for 0.
func errAbove(above int64) error {
	if above == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d were not charged", ErrDebtExceeded, above)
}
