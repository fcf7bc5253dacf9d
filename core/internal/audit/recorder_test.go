package audit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// reply is an error in a reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// failing is a trail that cannot be written.
type failing struct {
	Ring
	err   error
	tries int
}

func (f *failing) Append(context.Context, Entry) error {
	f.tries++
	return f.err
}

// told keeps what an operator is told.
type told []string

func (l *told) AuditFailed(err error) { *l = append(*l, "failed: "+err.Error()) }
func (l *told) AuditOff(err error)    { *l = append(*l, "off: "+err.Error()) }

var tasks = background.Runner{Start: func(do func()) { do() }, Patience: time.Hour}

// An act is in the audit if it changed something, or may have. The log has it if somebody is named.
func TestActed(t *testing.T) {
	var log logtest.Log
	r := NewRecorder(new(Ring), tasks, log.Logger(), new(told))
	bob := actor.With(context.Background(), "bob", "ticket 7")
	lost := &failure.Error{Class: failure.Lost, Err: errors.New("lost")}
	down := &failure.Error{Class: failure.Unreachable, Err: errors.New("down")}
	for _, act := range []struct {
		ctx     context.Context
		after   string
		changed bool
		err     error
	}{
		{bob, "a", true, nil},
		{bob, "b", false, nil},
		{bob, "c", false, lost},
		{bob, "d", false, down},
		{bob, "", false, lost},
		{context.Background(), "e", true, nil},
	} {
		r.Acted(act.ctx, Act{Began: time.Now(), What: Ban, Rule: "api", Subject: "user:a", After: act.after}, act.changed, act.err)
	}
	entries, err := Read(bob, r, "", 10)
	var got []string
	for _, e := range entries {
		got = append(got, e.Author+" "+e.After)
	}
	if want := []string{" e", "bob perhaps", "bob perhaps: c", "bob a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the audit is %q, %v, want %q", got, err, want)
	}
	if all, changed := log.Count("an operator acted", "author=bob", "subject=user:a"), log.Count("changed=true"); all != 5 || changed != 1 || log.Count("error=down") != 1 {
		t.Errorf("%d lines, %d of them about changes:\n%s", all, changed, log.String())
	}
}

// Failures to write are reported. While a right is missing, nothing is tried again.
func TestEntriesThatCannotBeWritten(t *testing.T) {
	var said told
	trail := &failing{err: errors.New("down")}
	r := NewRecorder(trail, tasks, slog.New(slog.DiscardHandler), &said)
	for range 2 {
		r.Record(context.Background(), time.Now(), Entry{Act: Reset})
	}
	trail.err = reply("NOPERM this user has no permissions")
	for range 3 {
		r.Record(context.Background(), time.Now(), Entry{Act: Reset})
	}
	if want := (told{"failed: down", "failed: down", "off: " + trail.err.Error()}); !slices.Equal(said, want) || trail.tries != 3 {
		t.Errorf("%d tries, and the operator was told %q", trail.tries, said)
	}
}

// A change of rules is written after the one before it.
func TestChangesOfRulesAreInOrder(t *testing.T) {
	ctx := context.Background()
	r := NewRecorder(new(Ring), background.Runner{Start: func(do func()) { go do() }}, slog.New(slog.DiscardHandler), new(told))
	first, second := make(chan struct{}), make(chan struct{})
	r.RulesChanged(ctx, "1", "2", first, second)
	r.RulesChanged(ctx, "", "1", nil, first)
	<-second
	entries, err := Read(ctx, r, "", 10)
	if err != nil || len(entries) != 2 || entries[0].After != "2" || entries[1].After != "1" || entries[1].Act != Rules {
		t.Errorf("the audit is %+v, %v", entries, err)
	}
}
