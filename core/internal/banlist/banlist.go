// Package banlist lists the subjects that are banned, for operators. A ban itself is stored beside
// the counters of its subject, where the deciding scripts read it. The list only says where to
// look: each entry of a page is checked against the ban, so the list may be late, incomplete or
// lost. It cannot be stored beside the bans, because they are in the slots of their subjects.
//
// A ban by hand is listed at once. Other bans are listed by the processes that see them in a reply
// of the store: Sightings collects such bans and writes them in the background.
package banlist

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const (
	// Most is the largest number of bans in the list: of each rule in Redis, or of all rules
	// together in a process without Redis. Beyond that, the bans that end first are left out.
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
	// Noted reports whether a note says that an operator imposed the ban. ByHand reports whether an
	// operator imposed it, as far as is known. Author and Note are the operator's, or "" if they are not
	// known.
	Noted        bool
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
	// Page looks at n bans of a rule in the order of their subjects, starting behind the subject
	// after, and returns those that are in force. To get the next page, pass next as after; next is
	// "" if this is the last page.
	Page(ctx context.Context, rule, after string, n int) (page []Entry, next string, err error)
	// Of returns the ban of a subject, listed or not, or false if none is in force.
	Of(ctx context.Context, rule, subject string) (e Entry, ok bool, err error)
}

// annotate fills in who imposed the ban, from the note beside it.
func (e *Entry) annotate(n algorithm.BanNote, ok bool) {
	if ok = ok && n.Ends == e.Ends; ok {
		e.Author, e.Note = n.Author, n.Note
	}
	e.Noted, e.ByHand = ok, ok || e.Bans == 0
}
