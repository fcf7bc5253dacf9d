package toplist

import (
	"context"
	"errors"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Flush adds what was noted since the last flush to the lists.
func (t *Table) Flush() {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.feature.IsOff() {
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
	total, end := 0, t.now()+flushTime
	for i, r := range rules {
		for of := range kinds {
			added, err := t.flush(r, of)
			if total += added; err != nil {
				return err
			}
		}
		if total >= maxAdded || t.now() > end {
			t.turn += i + 1
			return nil
		}
	}
	return nil
}

// flush adds what was noted about a rule. An error means that adding would fail for other rules
// too.
func (t *Table) flush(r *Rule, of kind) (added int, err error) {
	taken := r.take(of)
	done, err := t.add(r.name, &taken)
	r.putBack(taken)
	for _, e := range done {
		t.waiting[of].note([]byte(joined(r.name, e.Subject)), e.Number)
	}
	return len(done), err
}

// flushAll adds what was added to the lists of single rules to the list of all rules.
func (t *Table) flushAll() {
	for of := range kinds {
		_, _ = t.add(all, &t.waiting[of])
	}
}

// add adds the entries of a sketch to a list. It returns the entries that it removed from the
// sketch.
func (t *Table) add(list string, from *sketch) (done []Entry, err error) {
	entries := from.entries()
	if len(entries) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	added, err := t.slots.Add(ctx, list, from.of, entries)
	if err != nil {
		t.failed(err)
	}
	if errors.Is(err, ErrTooManyRules) || failure.ClassOf(err) == failure.Foreign { // only this list is unusable
		added, err = len(entries), nil
	}
	from.remove(entries[:added])
	return entries[:added], err
}

// retire ends the work for rules that are idle.
func (t *Table) retire(rules []*Rule) {
	for _, r := range rules {
		r.release(t.now())
	}
}

// failed logs why entries are missing from the lists. It logs nothing while Redis does not answer,
// because calls log that, and the entries are only late.
func (t *Table) failed(err error) {
	switch {
	case t.feature.TurnOff(err):
		t.log.TopOff(err)
	case errors.Is(err, errOdd), errors.Is(err, ErrTooManyRules), failure.ClassOf(err).Lasting():
		t.log.TopFailed(err)
	}
}
