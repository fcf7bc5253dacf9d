// Package banlist lists the subjects that are banned, for operators. A ban itself lies
// beside the counters of its subject, where the deciding scripts read it. The list only says where
// to look: each entry of a page is checked against the ban. So it may be late, incomplete or lost.
// It cannot lie beside the bans, because these are in the slots of their subjects.
//
// A ban by hand is listed at once. Any other is listed by the processes that read it in a reply of
// the store: Sightings collects such bans, and writes them in the background.
package banlist

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const (
	// Most is the largest number of bans that are listed: of a rule in Redis, and of all rules in
	// this process without Redis. Beyond that, those are left out that end first.
	Most = 100_000
	// MaxSubject is the length of the longest subject that is listed, because callers may choose
	// their subjects.
	MaxSubject = 255
)

// Sighting is a ban to be listed.
type Sighting struct {
	Rule, Subject string
	Ends          int64 // microseconds since the epoch
}

// Entry is a ban in force.
type Entry struct {
	Subject string
	algorithm.BanState
	At int64 // when the ban was read, by the store's clock, in microseconds since the epoch
	// ByHand reports whether an operator imposed the ban. Author and Note are then the operator's,
	// or "" if they are not known.
	ByHand       bool
	Author, Note string
}

// List holds the bans of all rules. It is safe for concurrent use.
type List interface {
	// Add lists bans.
	Add(ctx context.Context, bans []Sighting) error
	// AddByHand lists a ban by hand, with the operator's name and note, of at most 255 bytes each.
	AddByHand(ctx context.Context, ban Sighting, author, note string) error
	// Remove removes the ban of a subject from the list.
	Remove(ctx context.Context, rule, subject string) error
	// Page looks at n bans of a rule in the order of their subjects, beginning behind the subject
	// after, and returns those that are in force. next is the after of the next page, or "" if this
	// is the last one.
	Page(ctx context.Context, rule, after string, n int) (page []Entry, next string, err error)
	// Of returns the ban of a subject, listed or not, or false if none is in force.
	Of(ctx context.Context, rule, subject string) (e Entry, ok bool, err error)
}

// annotate fills in how the ban came about, by the note beside it.
func (e *Entry) annotate(n algorithm.BanNote, ok bool) {
	if ok = ok && n.Ends == e.Ends; ok {
		e.Author, e.Note = n.Author, n.Note
	}
	e.ByHand = ok || e.Bans == 0
}
