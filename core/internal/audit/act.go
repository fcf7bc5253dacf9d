package audit

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Act is what an operator did, or tried to do.
type Act struct {
	Began         time.Time
	What          string // one of the constants of this package
	Rule, Subject string
	Before, After string // for the entry
	Note          string // for the entry, if the context has none
}

// Acted writes a line about an act, if the context names who acted. If the act changed something,
// or may have, it also writes an entry. It writes no entry about acts without an effect: a Reset
// that finds nothing, as after most logins, would fill the audit with noise.
func (r *Recorder) Acted(ctx context.Context, a Act, changed bool, err error) {
	r.logAct(ctx, &a, changed, err)
	if failure.MayHaveActed(err) {
		a.After = strings.TrimSuffix("perhaps: "+a.After, ": ")
	} else if !changed {
		return
	}
	r.Record(ctx, a.Began, Entry{Act: a.What, Rule: a.Rule, Subject: a.Subject, Note: a.Note, Before: a.Before, After: a.After})
}

func (r *Recorder) logAct(ctx context.Context, a *Act, changed bool, err error) {
	by, ok := actor.Of(ctx)
	if !ok {
		return
	}
	line := []slog.Attr{
		slog.String("act", a.What), slog.String("rule", strings.Clone(a.Rule)), slog.String("subject", strings.Clone(a.Subject)),
		slog.String("author", by.Author), slog.String("note", by.Note), slog.Bool("changed", changed),
	}
	if err != nil {
		line = append(line, slog.Any("error", err))
	}
	r.lines.LogAttrs(ctx, slog.LevelInfo, "accesslimit: an operator acted", line...)
}
