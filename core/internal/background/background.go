// Package background runs the tasks of an operator's act that must not end with the operator's
// context: writing the audit entry and changing a list.
package background

import (
	"context"
	"time"
)

// Runner runs tasks in the background.
type Runner struct {
	// Start runs a task that nobody waits for, except Close of a store.
	Start func(do func())
	// Patience is how long Await waits, from the beginning of an act.
	Patience time.Duration
}

// Run runs a task in the background, even if the context has ended, and then closes done.
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
