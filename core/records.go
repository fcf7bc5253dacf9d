package core

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Record is a call that a SlidingLog admitted and that still counts.
type Record struct {
	// Time is when, by the store's clock, to the microsecond.
	Time time.Time
	// Cost is how many permits it took.
	Cost int
	// Note is what was kept with it: see [Rule].Note and [Limiter.AllowNoted].
	Note string
}

// maxNote bounds a note, because Redis keeps up to 10,000 of them for a subject.
const maxNote = 256

// AllowNoted is AllowN for a SlidingLog, with a note to be kept with the call if it is admitted: at most 256 bytes of it, as
// valid UTF-8. With any other algorithm it is a *RuleError.
func (l *Limiter) AllowNoted(ctx context.Context, name, subject string, limit Limit, n int, note string) (d Decision, err error) {
	if limit.Algorithm != SlidingLog && !limit.unlimited() {
		return d, &RuleError{Rule: name, Field: "Algorithm", Value: limit.Algorithm, Why: "keeps no notes: use SlidingLog"}
	}
	err = l.direct(ctx, &d, &limit, &question{name: name, subject: subject, n: n, charge: true, mark: cutNote(note)})
	return d, err
}

// Records are the calls of a subject that count in a SlidingLog now, newest first: who made the calls that filled the window.
// With any other algorithm it is a *RuleError. Other errors are those of Allow.
func (l *Limiter) Records(ctx context.Context, name, subject string, limit Limit) ([]Record, error) {
	if limit.unlimited() { // who has no limit is not recorded
		return nil, l.unlimited(ctx, new(Decision), &question{name: name, subject: subject})
	}
	compiled, err := l.counter(name, subject, limit)
	switch {
	case err != nil:
		return nil, err
	case limit.Algorithm != SlidingLog:
		return nil, &RuleError{Rule: name, Field: "Algorithm", Value: limit.Algorithm, Why: "keeps no records: use SlidingLog"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	kept, err := l.store.Records(ctx, l.appendDirectKey(nil, name, subject, compiled), compiled)
	if err != nil {
		return nil, l.storeError(name, err)
	}
	records := make([]Record, len(kept))
	for i, r := range kept {
		records[i] = Record{Time: time.UnixMicro(r.At), Cost: int(r.Cost), Note: r.Note}
	}
	return records, nil
}

// cutNote is a copy of as much of a note as is kept: what a caller sent is valid only during the call. Making it valid can make
// it longer, so it is cut again.
func cutNote(note string) string {
	return strings.Clone(cut(strings.ToValidUTF8(cut(note), "\uFFFD")))
}

// cut is as much of a note as is kept, in whole characters.
func cut(note string) string {
	if len(note) <= maxNote {
		return note
	}
	end := maxNote
	for end > maxNote-utf8.UTFMax && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end]
}
