package marks_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// ban imposes a ban by the rule r, which began at a time, and fails if it has to wait.
func (p *process) ban(subject string, since, until int64) {
	p.Helper()
	if !p.impose(subject, since, until) {
		p.Errorf("there is no room for a ban of %s", subject)
	}
}

// impose imposes a ban by the rule r, and reports whether it need not wait.
func (p *process) impose(subject string, since, until int64) bool {
	return p.Impose(marks.Mark{Rule: "r", Subject: subject, Since: since, Until: until, Bans: 1})
}

// follow reads what has changed in Redis, if there is one.
func (p *process) follow() {
	if p.server != nil {
		p.read()
	}
}

// When all places are taken, bans by rules give way to others that end later, and to acts of operators,
// which are errors when no ban is left.
func TestMarksAreBounded(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p, now := f.process(), f.now.Load()
		for i := range int64(100) {
			p.ban(fmt.Sprint(i), now, now+hour+i)
		}
		if p.impose("ends first", now, now+hour/2) {
			t.Error("there is room for a ban that ends first")
		}
		p.ban("ends last", now, now+2*hour)
		p.follow()
		p.want("0", "")
		p.want("ends last", marks.Banned)
		for i := range 100 {
			p.act(fmt.Sprint("operator's", i), marks.Blocked, 0)
		}
		if err := p.tryToAct("one more", marks.Blocked, 0); !errors.Is(err, marks.ErrFull) {
			t.Errorf("an act when there is no room: %v", err)
		}
		p.act("operator's0", marks.Unlimited, 0)
		p.follow()
		if n := len(p.All()); n != 100 {
			t.Errorf("%d marks", n)
		}
		if f.server == nil {
			return
		}
		other := f.process()
		other.read()
		if n := len(other.All()); n != 100 {
			t.Errorf("another process has %d marks", n)
		}
	})
}

// A process that follows drops what made room.
func TestRoomIsMadeEverywhere(t *testing.T) {
	f := newFleet(t, 100)
	one, other, now := f.process(), f.process(), f.now.Load()
	other.read()
	for i := range int64(150) {
		one.ban(fmt.Sprint(i), now, now+hour+i)
	}
	other.read()
	if n := len(other.All()); n != 100 {
		t.Errorf("another process has %d marks", n)
	}
}

// A ban by a rule is written once, whoever learns of it, and does not come back after its removal.
func TestBansByRules(t *testing.T) {
	onBoth(t, 10, func(t *testing.T, f *fleet) {
		p, now := f.process(), f.now.Load()
		for range 2 {
			p.ban("a", now, now+hour)
		}
		p.act("a", marks.Unbanned, 0)
		p.ban("a", now, now+hour)
		p.want("a", "")
	})
}

// Bans by rules that are too many in a second wait for the next ones.
func TestBansWaitForTheNextSecond(t *testing.T) {
	f := newFleet(t, 100)
	f.mostBans = 10
	p, once := f.process(), terms
	once.After = 1
	for i := range 25 {
		subject := fmt.Append(nil, i)
		p.Strike(subject, "r", subject, f.now.Load(), &once, true)
	}
	for _, want := range []int{10, 20, 25} {
		if !redistest.WaitUntil(func() bool { return len(p.All()) >= want }, patient) {
			t.Fatalf("%d bans, want %d", len(p.All()), want)
		}
		p.Round()
		if n := len(p.All()); n != want {
			t.Errorf("%d bans, want %d", n, want)
		}
		f.pass(second)
		p.Round()
	}
}

// A process that slept takes what is in Redis, and writes nothing back.
func TestAProcessThatSlept(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Blocked, 0)
	one.act("b", marks.Blocked, 0)
	before := dump(f, f.client())
	one.act("b", marks.Unlimited, 0)
	one.act("c", marks.Blocked, 0)
	other.read()
	other.Sleep(time.Hour)
	restore(f, f.client(), before)
	other.read()
	other.read()
	other.want("a", marks.Blocked)
	other.want("b", marks.Blocked)
	other.want("c", "")
	other.wantTold()
}

// A replaced mark does not come back when the one that replaced it has ended, whatever a process that rested
// finds.
func TestAReplacedMark(t *testing.T) {
	for _, others := range []int{0, 1} {
		f := newFleet(t, 100)
		one, other, client := f.process(), f.process(), f.client()
		one.act("a", marks.Blocked, 0)
		other.read()
		one.act("a", marks.Blocked, second)
		f.pass(9 * 60 * second)
		other.Sleep(9 * time.Minute)
		for range others {
			one.act("b", marks.Blocked, second)
			client.XTrimMaxLen(background, "test:{%marks}:mc1", 1)
		}
		dies := time.Now().Add(client.PTTL(background, "test:{%marks}:mh1").Val())
		if lives := dies.Sub(time.UnixMicro(f.now.Load())); lives < 23*time.Hour || lives > 25*time.Hour {
			t.Errorf("the keys live for another %v", lives)
		}
		for range 2 {
			other.read()
		}
		another := f.process()
		another.read()
		for _, p := range []*process{other, another} {
			p.want("a", "")
			p.wantTold()
		}
	}
}

// The server did not answer for a while, and has lost everything: a process that had read the marks
// when that began writes them back, unless others may have removed some and forgotten that.
func TestALongOutage(t *testing.T) {
	for outage, comesBack := range map[time.Duration]bool{time.Hour: true, 25 * time.Hour: false} {
		f := newFleet(t, 100)
		one, other := f.process(), f.process()
		one.read()
		one.act("a", marks.Blocked, 0)
		other.read()
		f.server.Kill()
		if err := other.Read(background); err == nil {
			t.Fatal("there is no server")
		}
		other.Sleep(outage)
		f.server.Restart()
		for range 3 {
			f.pass(second)
			other.read()
		}
		another := f.process()
		another.read()
		if comesBack {
			another.want("a", marks.Blocked)
			other.wantTold("1 written back")
		} else {
			another.want("a", "")
			other.want("a", "")
			other.wantTold()
		}
	}
}

// A mark is found while others are added, and the table grows.
func TestFindWhileTheTableGrows(t *testing.T) {
	f := &fleet{T: t, most: 10_000}
	f.now.Store(in2065)
	p := f.process()
	p.act("a", marks.Blocked, 0)
	rule, grown := p.Rule("r"), make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-grown:
					return
				default:
				}
				if rule.Find([]byte("a"), netip.Addr{}).Empty() {
					t.Error("the mark is not found")
					return
				}
			}
		})
	}
	for i := range 5_000 {
		p.act(fmt.Sprint(i), marks.Unlimited, 0)
	}
	close(grown)
	readers.Wait()
}

// The longest network that an operator marked counts, for every subject; a block of the subject's address or
// of the subject itself goes before what lifts its limits.
func TestNetworks(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		p.act("ip:203.0.113.0/24", marks.Blocked, 0)
		p.act("ip:203.0.113.7", marks.Unlimited, 0)
		p.act("ip:203.0.0.0/16", marks.Banned, hour)
		p.act("ip:2001:db8::/32", marks.Limited, 0)
		p.act("ip:2001:db8:1::/48", marks.Blocked, 0)
		p.act("user:alice", marks.Unlimited, 0)
		p.ban("ip:203.1.113.7", f.now.Load(), f.now.Load()+hour)
		for _, of := range []struct {
			subject, addr string
			want          marks.Kind
		}{
			{"user:bob", "203.0.113.9", marks.Blocked},
			{"user:bob", "::ffff:203.0.113.9", marks.Blocked},
			{"user:bob", "203.0.113.7", marks.Banned},
			{"user:bob", "203.0.114.7", marks.Banned},
			{"user:bob", "203.1.113.7", ""},
			{"ip:203.1.113.7", "203.1.113.7", marks.Banned},
			{"user:bob", "2001:db8:2::1", marks.Limited},
			{"user:bob", "2001:db8:1::1", marks.Blocked},
			{"user:bob", "2001:db9::1", ""},
			{"user:alice", "2001:db8:1::1", marks.Blocked},
			{"user:alice", "2001:db8:2::1", marks.Unlimited},
			{"ip:203.0.113.9", "203.0.113.9", marks.Blocked},
		} {
			if got := p.at(of.subject, netip.MustParseAddr(of.addr)); got != of.want {
				t.Errorf("%s at %s is %q, want %q", of.subject, of.addr, got, of.want)
			}
		}
		f.pass(hour)
		if got := p.at("user:bob", netip.MustParseAddr("203.0.113.7")); got != marks.Unlimited {
			t.Errorf("after the ban: %q", got)
		}
	})
}

// A network has one name, and is not longer than those that callers are counted by.
func TestCheckNetwork(t *testing.T) {
	for subject, ok := range map[string]bool{
		"user:alice": true, "ip:unknown": true, "ip:203.0.113.7": true, "ip:203.0.113.0/24": true, "ip:2001:db8::/32": true, "ip:2001:db8::/64": true,
		"ip:203.0.113.7/24": false, "ip:203.0.113.7/32": false, "ip:2001:db8::/65": false, "ip:2001:db8::1": false,
		"ip:2001:DB8::/32": false, "ip:::ffff:203.0.113.7": false, "ip:203.0.0.0/4": false, "ip:2000::/8": false,
	} {
		if err := marks.CheckNetwork(subject, 64); (err == nil) != ok {
			t.Errorf("%s: %v", subject, err)
		}
	}
}
