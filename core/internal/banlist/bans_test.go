package banlist_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	tasks "github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
)

// reply is an error in a reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// changes is a list that keeps the changes, or fails.
type changes struct {
	banlist.List
	err  error
	made []string
}

func (c *changes) change(text string) error {
	c.made = append(c.made, text)
	return c.err
}

func (c *changes) Add(_ context.Context, bans []banlist.Sighting) error {
	text := "add"
	for _, ban := range bans {
		text += " " + ban.Subject
	}
	return c.change(text)
}

func (c *changes) AddByHand(_ context.Context, ban banlist.Sighting, author, note string) error {
	return c.change("by hand " + ban.Subject + " " + author + " " + note)
}

func (c *changes) Remove(_ context.Context, _, subject string) error {
	return c.change("remove " + subject)
}

func (c *changes) Page(context.Context, string, string, int) ([]banlist.Entry, string, error) {
	return nil, "", c.change("page")
}

// told keeps what an operator is told.
type told []string

func (l *told) BansFailed(err error) { *l = append(*l, "failed: "+err.Error()) }
func (l *told) BansOff(err error)    { *l = append(*l, "off: "+err.Error()) }
func (l *told) Panicked(err error)   { *l = append(*l, "panic: "+err.Error()) }

var atOnce = tasks.Runner{Start: func(do func()) { do() }, Patience: time.Hour}

func within(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

// verdict returns a refusal by a ban.
func verdict(from algorithm.Origin, struck bool) *algorithm.Verdict {
	return &algorithm.Verdict{At: 1, RetryAfter: second, From: from, Struck: struck}
}

// A page has the bans that calls met in answers of the store. Without Redis, the call that began a
// ban has listed it.
func TestSaw(t *testing.T) {
	for _, test := range []struct {
		within banlist.Within
		want   string
	}{{within, "add old new"}, {nil, "add new"}} {
		list := new(changes)
		b := banlist.New(list, test.within, atOnce, new(told))
		b.Saw([]byte("k1"), "n", []byte("old"), verdict(algorithm.FromStore, false))
		b.Saw([]byte("k2"), "n", []byte("new"), verdict(algorithm.FromStore, true))
		b.Saw([]byte("k3"), "n", []byte("known"), verdict(algorithm.FromRefusal, true))
		if _, _, err := b.Page(background, "n", "", 1); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if want := []string{test.want, "page"}; !slices.Equal(list.made, want) {
			t.Errorf("changes: %q, want %q", list.made, want)
		}
	}
}

// A ban by hand has the name of its operator, unless a longer one is in force.
func TestImposedAndLifted(t *testing.T) {
	list := new(changes)
	b := banlist.New(list, within, atOnce, new(told))
	ctx := actor.With(background, "bob", "scraper")
	ban := banlist.Sighting{Rule: "n", Subject: "s", Ends: second}
	<-b.Imposed(ctx, ban, true)
	<-b.Imposed(ctx, ban, false)
	ban.Subject = string(make([]byte, banlist.MaxSubject+1))
	<-b.Imposed(ctx, ban, true)
	<-b.Lifted(ctx, "n", "s")
	if want := []string{"by hand s bob scraper", "add s", "remove s"}; !slices.Equal(list.made, want) {
		t.Errorf("changes: %q, want %q", list.made, want)
	}
}

// Failures are reported. While a right is missing, nothing is tried again.
func TestBansThatCannotBeListed(t *testing.T) {
	var said told
	list := &changes{err: errors.New("down")}
	b := banlist.New(list, within, atOnce, &said)
	<-b.Lifted(background, "n", "s")
	list.err = reply("NOPERM this user has no permissions")
	for range 3 {
		<-b.Lifted(background, "n", "s")
	}
	if want := (told{"failed: down", "off: " + list.err.Error()}); !slices.Equal(said, want) || len(list.made) != 2 {
		t.Errorf("%d changes, and the operator was told %q", len(list.made), said)
	}
}
