package toplist

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Flush adds to the lists what was noted since the last time.
func (t *Table) Flush() {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.off() {
		return
	}
	rules := t.inTurn()
	if err := t.flushRules(rules); err == nil {
		t.flushAll()
	}
	t.retire(rules)
}

// inTurn returns the active rules. It begins with the first one that the last flush left out.
func (t *Table) inTurn() []*Rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn %= max(1, len(t.active))
	return slices.Concat(t.active[t.turn:], t.active[:t.turn])
}

func (t *Table) flushRules(rules []*Rule) error {
	total, end := 0, time.Now().Add(flushTime)
	for i, r := range rules {
		for of := range kinds {
			added, err := t.flush(r, of)
			if total += added; err != nil {
				return err
			}
		}
		if total >= maxAdded || time.Now().After(end) {
			t.turn += i + 1
			return nil
		}
	}
	return nil
}

// flush adds what was noted of a rule. An error means that other rules would fare no better.
func (t *Table) flush(r *Rule, of kind) (added int, err error) {
	taken := r.take(of)
	added, err = t.add(r.name, of, taken)
	r.putBack(of, taken[added:])
	for _, e := range taken[:added] {
		t.waiting[of] = append(t.waiting[of], Entry{joined(r.name, e.Subject), e.Number})
	}
	if len(t.waiting[of]) > 2*maxAdded { // the list of all rules could not be written for long
		t.waiting[of] = greatest(t.waiting[of], maxEntries)
	}
	return added, err
}

// flushAll adds to the list of all rules what was added to those of single rules.
func (t *Table) flushAll() {
	for of := range kinds {
		greatest := greatest(t.waiting[of], maxEntries)
		added, _ := t.add(all, of, greatest)
		t.waiting[of] = slices.Clone(greatest[added:])
	}
}

func (t *Table) add(list string, of kind, entries []Entry) (added int, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	added, err = t.slots.Add(ctx, list, of, entries)
	if err != nil {
		t.failed(err)
	}
	if errors.Is(err, ErrTooManyRules) || failure.ClassOf(err) == failure.Foreign { // only this list is unusable
		return len(entries), nil
	}
	return added, err
}

// retire ends the work for rules that are idle.
func (t *Table) retire(rules []*Rule) {
	for _, r := range rules {
		r.rest(t.now())
	}
}
