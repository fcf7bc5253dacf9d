package inflight

import (
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Behind is what follows the answer to one call by rules in DryRun: the question to the store, what
// the handler settles, and what is given back when it has ended. These steps run in the background,
// one after the other.
type Behind struct {
	queue  *Queue
	rules  []string // the names of those whose estimates can be settled
	counts bool     // the status of the reply determines what is given back

	mu    sync.Mutex
	steps []func()
	runs  bool

	// Only steps use these.
	completion *Completion // nil if nothing was charged that depends on the end of the call
	stop       func() bool // ends the renewing of slots
}

// NewBehind returns a Behind without steps.
func (q *Queue) NewBehind() *Behind { return &Behind{queue: q} }

// AddRule adds a rule. settles reports whether it charges an estimate, and counts whether the status
// of the reply determines what is given back.
func (b *Behind) AddRule(name string, settles, counts bool) {
	if settles {
		b.rules = append(b.rules, name)
	}
	b.counts = b.counts || counts
}

// Rules returns the names of the rules whose estimates can be settled.
func (b *Behind) Rules() []string { return b.rules }

// Charged sets what the call was charged. It is for a step.
func (b *Behind) Charged(u *Completion) { b.completion = u }

// Estimates returns what can be settled, or nil if nothing was charged. It is for a step.
func (b *Behind) Estimates() *Estimates { return b.completion.Estimates() }

// Then adds a step.
func (b *Behind) Then(step func()) {
	b.mu.Lock()
	b.steps = append(b.steps, step)
	starts := !b.runs
	b.runs = true
	b.mu.Unlock()
	if starts {
		b.queue.Start(b.run)
	}
}

// run runs the steps until there are none.
func (b *Behind) run() {
	for step := b.next(); step != nil; step = b.next() {
		panics.Guard(step, b.queue.panicked)()
	}
}

func (b *Behind) next() (step func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs = len(b.steps) > 0; b.runs {
		step, b.steps = b.steps[0], b.steps[1:]
	}
	return step
}

// begin notes that the handler begins.
func (b *Behind) begin() {
	b.Then(func() {
		if b.completion != nil {
			b.stop = b.completion.hold()
		}
	})
}

// end notes how the call ended.
func (b *Behind) end(how ending) {
	b.Then(func() {
		if b.stop != nil {
			b.stop()
		}
		if b.completion != nil {
			b.completion.finish(how)
		}
	})
}
