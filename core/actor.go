package core

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/audit"
)

// WithActor returns a context that names the operator who acts, with a note that gives the reason.
// With this context, Ban, Unban, Reset, and Set and Remove of [Overrides] write a line to
// Options.Logger, with the author, the note and the subject, and with the error if there was one.
// [Limiter.Audit] returns the author and the note too. Each is cut at 255 bytes.
func WithActor(ctx context.Context, author, note string) context.Context {
	return actor.With(ctx, author, note)
}

// act is what an operator did, or tried to do.
type act struct {
	began         time.Time
	what          string // a constant of package audit
	rule, subject string
	before, after string // for the audit stream
	note          string // for the audit stream, if the context has none
}

// operated logs what an operator did, or tried to do, if the context names one. If that changed
// something, or may have, it is also written into the audit stream.
func (l *Limiter) operated(ctx context.Context, a act, changed bool, err error) {
	l.logOperated(ctx, &a, changed, err)
	if mayHaveActed(err) {
		a.after = strings.TrimSuffix("perhaps: "+a.after, ": ")
	} else if !changed {
		return
	}
	l.record(ctx, a.began, audit.Entry{
		Act: a.what, Rule: a.rule, Subject: a.subject, Note: a.note, Before: a.before, After: a.after,
	})
}

func (l *Limiter) logOperated(ctx context.Context, a *act, changed bool, err error) {
	by, ok := actor.Of(ctx)
	if !ok {
		return
	}
	line := []slog.Attr{
		slog.String("act", a.what), slog.String("rule", strings.Clone(a.rule)), slog.String("subject", strings.Clone(a.subject)),
		slog.String("author", by.Author), slog.String("note", by.Note), slog.Bool("changed", changed),
	}
	if err != nil {
		line = append(line, slog.Any("error", err))
	}
	l.options.Logger.LogAttrs(ctx, slog.LevelInfo, "accesslimit: an operator acted", line...)
}
