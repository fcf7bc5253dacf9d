package banlist

import (
	"context"
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/optional"
)

// Log receives what an operator should know.
type Log interface {
	// BansFailed reports that bans could not be listed.
	BansFailed(err error)
	// BansOff reports that a right that the list needs is missing.
	BansOff(err error)
	// Panicked reports a panic that was caught.
	Panicked(err error)
}

// Within calls a function with a context that bounds how long it takes.
type Within func(ctx context.Context, do func(context.Context) error) error

// Bans lists bans in the background: those that calls run into, and those that operators impose.
// Make one with New. It is safe for concurrent use.
type Bans struct {
	list    List
	seen    *Sightings
	within  Within // nil without Redis
	inRedis bool
	tasks   background.Runner
	log     Log
	feature optional.Feature
}

// New returns the Bans of a list. within bounds the time to read a page; it is nil without Redis.
func New(list List, within Within, tasks background.Runner, log Log) *Bans {
	b := &Bans{list: list, within: within, inRedis: within != nil, tasks: tasks, log: log}
	b.seen = NewSightings(b.add, tasks.Start, log.Panicked)
	return b
}

// Saw lists the ban that a verdict reports, if the store has just reported it. Without Redis, only
// the call that begins a ban lists it. Saw copies what it keeps.
func (b *Bans) Saw(key []byte, rule string, subject []byte, v *algorithm.Verdict) {
	if v.From == algorithm.FromStore && (b.inRedis || v.Struck) {
		b.seen.See(key, rule, subject, v.At+v.RetryAfter)
	}
}

func (b *Bans) add(ctx context.Context, met []Sighting) error {
	return b.write(ctx, func(ctx context.Context) error { return b.list.Add(ctx, met) })
}

// Imposed lists a ban by hand in the background, and then closes the channel. If changed is false,
// a longer ban was already in force, and keeps its author.
func (b *Bans) Imposed(ctx context.Context, ban Sighting, changed bool) (listed <-chan struct{}) {
	ban.Rule, ban.Subject = strings.Clone(ban.Rule), strings.Clone(ban.Subject) // a framework may have lent them for one call
	by, _ := actor.Of(ctx)
	return b.change(ctx, func(ctx context.Context) error {
		switch {
		case len(ban.Subject) > MaxSubject:
			return nil
		case !changed:
			return b.list.Add(ctx, []Sighting{ban})
		default:
			return b.list.AddByHand(ctx, ban, by.Author, by.Note)
		}
	})
}

// Lifted removes a ban from the list in the background, and then closes the channel.
func (b *Bans) Lifted(ctx context.Context, rule, subject string) (removed <-chan struct{}) {
	rule, subject = strings.Clone(rule), strings.Clone(subject)
	return b.change(ctx, func(ctx context.Context) error { return b.list.Remove(ctx, rule, subject) })
}

func (b *Bans) change(ctx context.Context, change func(context.Context) error) (done <-chan struct{}) {
	changed := make(chan struct{})
	b.tasks.Run(ctx, changed, func(ctx context.Context) { _ = b.write(ctx, change) })
	return changed
}

// errOff is the error while a right for the list is missing.
var errOff = errors.New("the list of bans is off")

// write writes to the list, unless a right is missing, and logs failures.
func (b *Bans) write(ctx context.Context, write func(context.Context) error) error {
	if b.feature.IsOff() {
		return errOff
	}
	err := write(ctx)
	switch {
	case b.feature.TurnOff(err):
		b.log.BansOff(err)
	case err != nil && ctx.Err() == nil:
		b.log.BansFailed(err)
	}
	return err
}

// Page lists the bans that calls ran into, and then returns a page of the list. See [List].
func (b *Bans) Page(ctx context.Context, rule, after string, n int) (page []Entry, next string, err error) {
	read := func(ctx context.Context) (err error) {
		b.seen.Flush(ctx)
		page, next, err = b.list.Page(ctx, rule, after, n)
		return err
	}
	if b.within == nil {
		err = read(ctx)
	} else {
		err = b.within(ctx, read)
	}
	return page, next, err
}

// Of returns the ban of a subject, listed or not, or false if none is in force.
func (b *Bans) Of(ctx context.Context, rule, subject string) (e Entry, ok bool, err error) {
	return b.list.Of(ctx, rule, strings.Clone(subject))
}

// Close lists the bans that calls ran into. Later ones are ignored.
func (b *Bans) Close() { b.seen.Close() }
