// Package background carries out what belongs to an operator's act, but must not end with the
// operator's context: the entry in the audit, and the change of a list.
package background

import (
	"context"
	"time"
)

// Runner runs tasks in the background.
type Runner struct {
	// Start runs a task that nobody waits for, except a store that is closed.
	Start func(do func())
	// Patience is how long Await waits, from the beginning of an act.
	Patience time.Duration
}

// Run runs a task in the background, also after the context has ended, and closes done afterwards.
func (r Runner) Run(ctx context.Context, done chan<- struct{}, do func(context.Context)) {
	r.Start(func() {
		defer close(done)
		do(context.WithoutCancel(ctx))
	})
}

// Await waits for a task, but only until the context ends or Patience has passed since the act began.
func (r Runner) Await(ctx context.Context, began time.Time, done <-chan struct{}) {
	patience := time.NewTimer(time.Until(began.Add(r.Patience)))
	defer patience.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-patience.C:
	}
}
