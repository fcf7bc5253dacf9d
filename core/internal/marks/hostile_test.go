package marks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const markHash, markStream = "test:{%marks}:mh1", "test:{%marks}:mc1"

// When all places are taken, an operator who removes a mark has room for another one.
func TestRemovalsMakeRoom(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		for i := range 100 {
			p.act(fmt.Sprint(i), marks.Blocked, 0)
		}
		for i := range 100 {
			p.act(fmt.Sprint(i), marks.Removed, 0)
			p.act(fmt.Sprint("new", i), marks.Blocked, 0)
		}
		if err := p.tryToAct("one more", marks.Blocked, 0); !errors.Is(err, marks.ErrFull) {
			t.Errorf("an act when there is no room: %v", err)
		}
		p.follow()
		if n := len(p.All()); n != 100 {
			t.Errorf("%d marks", n)
		}
	})
}

// A rule's ban does not take the place of an operator's while that holds.
func TestAnOperatorsBanIsNotShortened(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		p.act("a", marks.Banned, 2*hour)
		f.pass(second)
		now := f.now.Load()
		p.ban("a", now, now+hour)
		f.pass(hour)
		p.follow()
		p.want("a", marks.Banned)
		f.pass(hour)
		p.follow()
		p.want("a", "")
		p.ban("a", now, now+3*hour)
		p.want("a", marks.Banned)
	})
}

// The clock of a server that has lost everything is behind. The act of an operator still wins.
func TestTheClockOfANewServer(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Blocked, 0)
	other.read()
	f.pass(-hour)
	f.client().FlushAll(background)
	one.act("a", marks.Unlimited, 0)
	for _, p := range []*process{one, other} {
		p.read()
		p.want("a", marks.Unlimited)
	}
}

// Bans by rules come back after a loss, though not so many may be new in a second.
func TestBansByRulesAreWrittenBack(t *testing.T) {
	f := newFleet(t, 10_000)
	f.mostBans = 100
	one, other := f.process(), f.process()
	for i := range 300 {
		if i%100 == 0 {
			f.pass(second)
		}
		one.ban(fmt.Sprint(i), f.now.Load(), f.now.Load()+hour)
	}
	other.read()
	f.client().FlushAll(background)
	other.read()
	one.ban("new", f.now.Load(), f.now.Load()+hour)
	another := f.process()
	another.read()
	if n := len(another.All()); n != 301 {
		t.Errorf("%d marks, want 301", n)
	}
	other.wantTold("300 written back")
}

// While a machine is suspended, its clock stands still. Bans do not last longer for that.
func TestASuspendedMachine(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Banned, hour)
	other.read()
	f.pass(hour / 2)
	other.behind.Store(hour / 2)
	other.Sleep(time.Hour / 2)
	other.read()
	other.want("a", marks.Banned)
	f.pass(hour / 2)
	other.want("a", "")
	other.wantTold()
}

// A long subject can be named as lists name it, by operators. Callers who do so are others.
func TestLongSubjectsByTheirNames(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p, long := f.process(), strings.Repeat("a", 300)
		p.act(long, marks.Blocked, 0)
		name := p.All()[0].Subject
		p.want(name, "")
		if found, err := p.Rule("r").Of(background, name); err != nil || found.Other() == nil {
			t.Errorf("%+v, %v", found, err)
		}
		p.act(name, marks.Removed, 0)
		p.want(long, "")
		p.act(name, marks.Unlimited, 0)
		p.want(long, marks.Unlimited)
	})
}

// Whatever strangers write into the keys, acts take its place, and the rest is read.
func TestForeignValues(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Blocked, 0)
	other.read()
	c := f.client()
	for field, value := range map[string]string{
		"mark r b": "x", "mark r c": `9999999999999999999 0 0 {"rule":"r","subject":"c","mark":"blocked"}`,
		"mark r d": `1 0 0 {"rule":"r","subject":"d","mark":"slowed"}`, "mark r e": `9223372036854775807 0 0 {"rule":"r","subject":"e","mark":"blocked"}`,
		"rate": "x", "mark r h": `1 1 9223372036854775807 {"rule":"r","subject":"h","mark":"blocked"}`, "ban r f": `1 9 5 {"rule":"r","subject":"f","mark":"banned"}`,
	} {
		c.HSet(background, markHash, field, value)
	}
	f.process().read()
	for _, subject := range []string{"b", "c", "d", "e", "h"} {
		one.act(subject, marks.Blocked, 0)
		one.want(subject, marks.Blocked)
	}
	one.act("f", marks.Banned, hour)
	c.Do(background, "xadd", markStream, "*", "one", "two", "three", "four")
	one.act("g", marks.Blocked, 0)
	other.read()
	for _, subject := range []string{"a", "b", "c", "d", "e", "g", "h"} {
		other.want(subject, marks.Blocked)
	}
	other.want("f", marks.Banned)
}

// If the keys hold something else, operators learn of it, because calls do not.
func TestKeysOfAnotherType(t *testing.T) {
	for _, key := range []string{markHash, markStream} {
		f := newFleet(t, 100)
		one, other := f.process(), f.process()
		one.act("a", marks.Blocked, 0)
		other.read()
		c := f.client()
		c.HSet(background, markHash, "@", "9-9")
		c.Del(background, key)
		c.Set(background, key, "x", 0)
		if err := other.Read(background); err == nil {
			t.Fatal("no error")
		}
		other.want("a", marks.Blocked)
		other.mu.Lock()
		if len(other.told) != 1 || !strings.HasPrefix(other.told[0], "failed: ") {
			t.Errorf("%s: told %q", key, other.told)
		}
		other.mu.Unlock()
	}
}

// Bans by rules that Redis does not confirm hold here for a minute, if there is room, and are written when
// Redis is back.
func TestUnconfirmedBans(t *testing.T) {
	f := newFleet(t, 10)
	p, now := f.process(), f.now.Load()
	p.act("unbanned", marks.Banned, hour)
	p.act("unbanned", marks.Unbanned, 0)
	f.server.Kill()
	p.impose("unbanned", now, now+hour)
	p.want("unbanned", "")
	for i := range 20 {
		p.impose(fmt.Sprint(i), now, now+hour)
	}
	if n := len(p.All()); n != 9 {
		t.Errorf("%d bans beside a removal, want 9", n)
	}
	f.pass(60 * second)
	if n := len(p.All()); n != 0 {
		t.Errorf("%d bans after a minute", n)
	}
	f.server.Restart()
	another := f.process()
	written := func() bool {
		p.Round()
		return another.Read(background) == nil && len(another.All()) >= 9
	}
	if !redistest.WaitUntil(written, patient) {
		t.Errorf("%d bans are written after the server came back, want 9", len(another.All()))
	}
}

// What Redis does not confirm does not outlast its own end.
func TestShortUnconfirmedMarks(t *testing.T) {
	f := newFleet(t, 10)
	p, now := f.process(), f.now.Load()
	p.read()
	f.server.Kill()
	p.impose("banned", now, now+second)
	if _, err := p.Act(background, marks.Mark{Rule: "r", Subject: "blocked", Kind: marks.Blocked, Until: now + second}, 0); err == nil {
		t.Fatal("there is no server")
	}
	p.want("banned", marks.Banned)
	p.want("blocked", marks.Blocked)
	f.pass(2 * second)
	p.impose("another", now, now+hour) // tries the others again
	p.want("banned", "")
	p.want("blocked", "")
}

// An operator's unban that Redis does not confirm holds against a ban that waits to be written.
func TestAnUnconfirmedUnban(t *testing.T) {
	f := newFleet(t, 10)
	p, now := f.process(), f.now.Load()
	f.server.Kill()
	p.impose("a", now, now+hour)
	if err := p.tryToAct("a", marks.Unbanned, 0); err == nil {
		t.Fatal("there is no server")
	}
	p.impose("b", now, now+hour) // tries both
	p.want("a", "")
	p.want("b", marks.Banned)
}

// A ban that could not be written for long is not written after an operator's unban was forgotten.
func TestAnOldWaitingBan(t *testing.T) {
	f := newFleet(t, 10)
	p, operator, now := f.process(), f.process(), f.now.Load()
	f.server.Kill()
	p.impose("a", now, now+30*24*hour)
	f.server.Restart()
	unbanned := func() bool { return operator.tryToAct("a", marks.Unbanned, 0) == nil }
	if !redistest.WaitUntil(unbanned, patient) {
		t.Fatal("the server does not come back")
	}
	f.pass(25 * hour)
	operator.act("another", marks.Blocked, 0)
	p.Sleep(25 * time.Hour)
	for range 3 {
		p.Round()
	}
	operator.read()
	p.want("a", "")
	operator.want("a", "")
}
