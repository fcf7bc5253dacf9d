package core

import (
	"context"
	"log/slog"
	"strings"
)

// actor holds the name of the operator who acts, and the note that WithActor was given.
type actor struct{ author, note string }

type actorKey struct{}

// WithActor returns a context that names the operator who acts, with a note that gives the reason.
// With this context, Ban, Unban and Reset write a line to Options.Logger, with the author, the note
// and the subject, and with the error if there was one.
func WithActor(ctx context.Context, author, note string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor{strings.Clone(author), strings.Clone(note)})
}

// operated logs what an operator did, or tried to do, if the context names one.
func (l *Limiter) operated(ctx context.Context, act, rule, subject string, changed bool, err error) {
	by, ok := ctx.Value(actorKey{}).(actor)
	if !ok {
		return
	}
	line := []slog.Attr{
		slog.String("act", act), slog.String("rule", strings.Clone(rule)), slog.String("subject", strings.Clone(subject)),
		slog.String("author", by.author), slog.String("note", by.note), slog.Bool("changed", changed),
	}
	if err != nil {
		line = append(line, slog.Any("error", err))
	}
	l.options.Logger.LogAttrs(ctx, slog.LevelInfo, "accesslimit: an operator acted", line...)
}
