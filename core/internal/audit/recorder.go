package audit

import (
	"context"
	"log/slog"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/optional"
)

// Log receives what an operator should know.
type Log interface {
	// AuditFailed reports that an entry could not be written.
	AuditFailed(err error)
	// AuditOff reports that the right to write entries is missing.
	AuditOff(err error)
}

// Recorder writes entries into a trail in the background, and a line about each act of a named
// operator. An act never fails because its entry cannot be written. A Recorder is safe for
// concurrent use.
type Recorder struct {
	trail   Trail
	tasks   background.Runner
	lines   *slog.Logger
	log     Log
	feature optional.Feature
}

// NewRecorder returns a Recorder that writes lines to a logger. It reports what an operator should
// know to log.
func NewRecorder(trail Trail, tasks background.Runner, lines *slog.Logger, log Log) *Recorder {
	return &Recorder{trail: trail, tasks: tasks, lines: lines, log: log}
}

// Record writes an entry. It waits for the reply, so that Read returns the entry afterwards, but at
// most until the context ends or the patience since began is over.
func (r *Recorder) Record(ctx context.Context, began time.Time, e Entry) {
	e = e.By(ctx)
	written := make(chan struct{})
	r.write(ctx, written, func(ctx context.Context) error { return r.trail.Append(ctx, e) })
	r.tasks.Await(ctx, began, written)
}

// RulesChanged writes that the rules have changed from one version to another, unless another
// process has done so. The version before is "" for the first one of this process. If earlier is
// not nil, RulesChanged first waits until it is closed, which means that the previous change is
// written. It closes written when this change is written.
func (r *Recorder) RulesChanged(ctx context.Context, before, now string, earlier <-chan struct{}, written chan<- struct{}) {
	e := Entry{Act: Rules, Before: before, After: now}.By(ctx)
	r.write(ctx, written, func(ctx context.Context) error {
		if earlier != nil {
			<-earlier
		}
		return r.trail.AppendChange(ctx, e, before, now)
	})
}

// Read returns at most n entries that are older than the one with the ID before, or the newest ones
// if that is "", newest first. It is not a method, because in a service that uses reflection the
// linker keeps all exported methods, and only operators read.
func Read(ctx context.Context, from *Recorder, before string, n int) ([]Entry, error) {
	return from.trail.read(ctx, before, n)
}

// write writes into the trail in the background, unless a right is missing, and then closes the
// channel.
func (r *Recorder) write(ctx context.Context, written chan<- struct{}, write func(context.Context) error) {
	r.tasks.Run(ctx, written, func(ctx context.Context) {
		if r.feature.IsOff() {
			return
		}
		switch err := write(ctx); {
		case r.feature.TurnOff(err):
			r.log.AuditOff(err)
		case err != nil:
			r.log.AuditFailed(err)
		}
	})
}
