// Package audit records the acts of operators, in a Redis stream for all processes or in this
// process alone. Both keep a bounded number of entries and forget the oldest.
//
// An entry is written after the act by a script of its own, because in a cluster the stream and the
// subject are in different slots. If a process dies in between, the act has no entry.
package audit

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
)

// The acts of entries.
const (
	Override        = "override"
	OverrideRemoved = "override removed"
	Ban             = "ban"
	Unban           = "unban"
	Reset           = "reset"
	Rules           = "rules"
)

const (
	// maxEntries is about how many entries are kept. Redis removes them some hundred at a time.
	maxEntries = 10_000
	// maxVersions is how many versions of rules are remembered, so that each change is written only
	// once.
	maxVersions = 1_000
)

// Entry is one act. The fields are those of operate.AuditEntry.
type Entry struct {
	ID            string // "" before it is written
	Time          time.Time
	Act           string
	Rule, Subject string
	Author, Note  string
	Before, After string
}

// Trail holds entries. It is safe for concurrent use.
type Trail interface {
	// Append writes an entry. Its ID and Time are ignored, and its texts are cut at 255 bytes.
	Append(ctx context.Context, e Entry) error
	// AppendChange writes an entry about rules, unless another process has written the same change,
	// from the version before to the version now. before is "" if the process has just started.
	// Versions are any texts that identify the rules.
	AppendChange(ctx context.Context, e Entry, before, now string) error
	// read returns at most n entries that are older than the one with the ID before, or the newest
	// ones if that is "", newest first.
	read(ctx context.Context, before string, n int) ([]Entry, error)
}

// By returns the entry with the author and the note of the operator that a context names. If the
// operator left no note, the entry keeps its own. All texts are copied, because the entry may be
// written after the call has ended.
func (e Entry) By(ctx context.Context) Entry {
	by, _ := actor.Of(ctx)
	e.Author = by.Author
	if by.Note != "" {
		e.Note = by.Note
	}
	return e.cut()
}

// fields are the fields of an entry by their names in the stream.
func (e *Entry) fields() []field {
	return []field{
		{"act", &e.Act},
		{"rule", &e.Rule},
		{"subject", &e.Subject},
		{"author", &e.Author},
		{"note", &e.Note},
		{"before", &e.Before},
		{"after", &e.After},
	}
}

type field struct {
	name  string
	value *string
}

// cut returns a copy of the entry that shares no memory with a caller.
func (e Entry) cut() Entry {
	for _, f := range e.fields() {
		*f.value = actor.Cut(*f.value)
	}
	return e
}

// position is an ID: the time in milliseconds since the epoch, and a number that tells apart the
// entries of one millisecond.
type position struct{ milli, number uint64 }

func (p position) String() string {
	return strconv.FormatUint(p.milli, 10) + "-" + strconv.FormatUint(p.number, 10)
}

func (p position) time() time.Time { return time.UnixMilli(int64(min(p.milli, 1<<53))) }

func (p position) less(q position) bool {
	return p.milli < q.milli || p.milli == q.milli && p.number < q.number
}

func parsePosition(id string) (p position, ok bool) {
	milli, number, ok := strings.Cut(id, "-")
	p.milli, ok = parseNumber(milli, ok)
	p.number, ok = parseNumber(number, ok)
	return p, ok
}

func parseNumber(digits string, ok bool) (uint64, bool) {
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// IsID reports whether a text is the ID of an entry.
func IsID(text string) bool {
	_, ok := parsePosition(text)
	return ok
}
