package marks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	patient = time.Minute
	second  = int64(1_000_000)
	hour    = 3600 * second
	// in2065 is ahead of the server's own clock.
	in2065 = 3_000_000_000_000_000
)

var background = context.Background()

// fleet is a Redis, or none, and the clock of all its processes.
type fleet struct {
	*testing.T
	server *redistest.Server
	now    atomic.Int64
	most   int
	// mostBans is how many bans by rules may be new in a second, or 0 for as many as fit.
	mostBans int
}

func newFleet(t *testing.T, most int) *fleet {
	f := &fleet{T: t, server: redistest.Start(t), most: most}
	f.now.Store(in2065)
	return f
}

func (f *fleet) pass(d int64) { f.now.Add(d) }

// process is one of the fleet, and what its operators are told.
type process struct {
	*fleet
	*marks.Set
	behind atomic.Int64 // how long its clock stood still
	mu     sync.Mutex
	told   []string
}

func (p *process) tell(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

func (p *process) MarksOff(err error)       { p.tell("off: %v", err) }
func (p *process) MarkUnreadable(err error) { p.tell("unreadable: %v", err) }
func (p *process) MarksWrittenBack(n int)   { p.tell("%d written back", n) }
func (p *process) MarksFailed(err error)    { p.tell("failed: %v", err) }
func (p *process) Panicked(err error)       { p.tell("panicked: %v", err) }

// process starts another process. Without a server, it keeps its marks itself.
func (f *fleet) process() *process {
	p := &process{fleet: f}
	now := func() int64 { return f.now.Load() - p.behind.Load() }
	o := marks.Options{Prefix: "test", Now: now, SinceEpoch: f.now.Load, Calls: noCalls, Log: p, Most: f.most, MostBans: cmp.Or(f.mostBans, 10*f.most)}
	if f.server != nil {
		o.Redis = redisstore.New(scriptclock.NewClient(f.client(), f.now.Load, scriptclock.TakeTime), patient)
		bounded.Cleanup(f, o.Redis.Close)
	}
	p.Set = marks.NewSet(o)
	bounded.Cleanup(f, p.Close)
	return p
}

func noCalls() uint64 { return 0 }

func (f *fleet) client() *redis.Client {
	return f.server.Client(f, func(o *redis.Options) { o.DialerRetries = 1 })
}

// act does an act under the rule r.
func (p *process) act(subject string, kind marks.Kind, span int64) {
	p.Helper()
	if err := p.tryToAct(subject, kind, span); err != nil {
		p.Fatalf("%s %s: %v", kind, subject, err)
	}
}

func (p *process) tryToAct(subject string, kind marks.Kind, span int64) error {
	_, err := p.Act(background, marks.Mark{Rule: "r", Subject: subject, Kind: kind, Limits: limitsOf(kind), Note: "why"}, span)
	return err
}

func limitsOf(kind marks.Kind) string {
	if kind == marks.Limited {
		return "500/m, 10000/day"
	}
	return ""
}

func (p *process) read() {
	p.Helper()
	if err := p.Read(background); err != nil {
		p.Fatal(err)
	}
}

// is returns the kind of the mark that holds for a subject under the rule r, or "".
func (p *process) is(subject string) marks.Kind { return p.at(subject, netip.Addr{}) }

func (p *process) at(subject string, addr netip.Addr) marks.Kind {
	if m := p.Rule("r").Find([]byte(subject), addr).Mark(); m != nil {
		return m.Kind
	}
	return ""
}

func (p *process) want(subject string, want marks.Kind) {
	p.Helper()
	if got := p.is(subject); got != want {
		p.Errorf("%s is %q, want %q", subject, got, want)
	}
}

func (p *process) wantTold(want ...string) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.told, want) {
		p.Errorf("told %q, want %q", p.told, want)
	}
	p.told = nil
}

// onBoth runs a test with Redis and without.
func onBoth(t *testing.T, most int, test func(t *testing.T, f *fleet)) {
	t.Run("Redis", func(t *testing.T) { test(t, newFleet(t, most)) })
	t.Run("process", func(t *testing.T) {
		f := &fleet{T: t, most: most}
		f.now.Store(in2065)
		test(t, f)
	})
}

// A subject has a ban and another mark. A block goes before a ban, and a ban before the rest. Each ends
// by itself, or is removed.
func TestOneSubject(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		p.want("a", "")
		p.act("a", marks.Limited, 4*hour)
		p.want("a", marks.Limited)
		p.want("b", "")
		p.act("a", marks.Banned, hour)
		p.want("a", marks.Banned)
		p.act("a", marks.Blocked, 2*hour)
		p.want("a", marks.Blocked)
		f.pass(2*hour - 1)
		p.want("a", marks.Blocked)
		p.act("a", marks.Banned, hour)
		f.pass(1)
		p.want("a", marks.Banned)
		p.act("a", marks.Unlimited, 0)
		p.want("a", marks.Banned)
		p.act("a", marks.Unbanned, 0)
		p.want("a", marks.Unlimited)
		p.act("a", marks.Removed, 0)
		p.want("a", "")
		p.act("never marked", marks.Removed, 0)
		if err := p.tryToAct("a", marks.Blocked, -1); err != nil && !errors.Is(err, marks.ErrEnded) {
			t.Error(err)
		}
		long := string(make([]byte, 1000))
		p.act(long, marks.Blocked, 0)
		p.want(long, marks.Blocked)
		p.wantTold()
	})
}

// An act in one process holds in the others as soon as they have read it, and in new ones.
func TestProcessesFollow(t *testing.T) {
	f := newFleet(t, 10_000)
	one, other := f.process(), f.process()
	one.read()
	one.act("a", marks.Blocked, hour)
	other.read()
	other.want("a", marks.Blocked)
	other.act("a", marks.Removed, 0)
	one.want("a", marks.Blocked)
	for i := range 1_200 { // more than are read in one trip
		other.act(fmt.Sprint(i), marks.Banned, hour)
	}
	one.read()
	one.want("a", "")
	one.want("1199", marks.Banned)
	another := f.process()
	another.read()
	for _, p := range []*process{one, other, another} {
		if n := len(p.All()); n != 1_200 {
			t.Errorf("%d marks, want 1200", n)
		}
	}
	f.pass(hour)
	if n := len(one.All()); n != 0 {
		t.Errorf("%d marks after their ends", n)
	}
}

// Two operators act at once: every process has the act of the later one.
func TestTheNewerActWins(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.read()
	other.read()
	one.act("a", marks.Blocked, 0)
	other.act("a", marks.Unlimited, 0)
	one.read()
	other.read()
	one.want("a", marks.Unlimited)
	other.want("a", marks.Unlimited)
}

// A process that follows has a mark within a second.
func TestWithinASecond(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	other.Start()
	one.act("a", marks.Blocked, 0)
	if !redistest.WaitUntil(func() bool { return other.is("a") == marks.Blocked }, patient) {
		t.Error("the mark is not read")
	}
}

// Until a process has read all marks, it asks for those of a subject and its networks.
func TestBeforeTheFirstReading(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Blocked, 0)
	one.act("ip:2001:db8::/32", marks.Blocked, 0)
	one.act("ip:203.0.113.0/24", marks.Blocked, 0)
	for subject, addr := range map[string]string{"a": "192.0.2.1", "b": "2001:db8::1", "c": "203.0.113.9"} {
		other.want(subject, "")
		if err := other.Rule("r").Ask(background, []byte(subject), netip.MustParseAddr(addr)); err != nil {
			t.Fatal(err)
		}
		if got := other.at(subject, netip.MustParseAddr(addr)); got != marks.Blocked {
			t.Errorf("%s at %s is %q", subject, addr, got)
		}
	}
	none := f.process().Rule("none")
	if !none.MayHave() {
		t.Error("nothing was read, and there are no marks")
	}
	one.read()
	if one.Rule("none").MayHave() {
		t.Error("a rule without marks has some")
	}
}

// A process that decides no calls rests. The next call asks for the marks of its subject, and then the
// process follows again.
func TestAProcessThatRests(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	other.Start()
	follows := func() bool { return !other.Rule("none").MayHave() }
	if !redistest.WaitUntil(follows, patient) {
		t.Fatal("it does not begin to follow")
	}
	other.Rest()
	one.act("a", marks.Blocked, 0)
	if !other.Rule("r").MayHave() {
		t.Fatal("a process that rests needs no trip")
	}
	if err := other.Rule("r").Ask(background, []byte("a"), netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	other.want("a", marks.Blocked)
	if !redistest.WaitUntil(follows, patient) {
		t.Error("it does not follow again")
	}
}

// A process that rests, and whose user lacks a right, follows after the next call once it is granted.
func TestARightIsGranted(t *testing.T) {
	f := newFleet(t, 100)
	p, client := f.process(), f.client()
	p.Rest()
	for _, right := range []string{"-hget", "+hget"} {
		if err := client.Do(background, "acl", "setuser", "default", right).Err(); err != nil {
			t.Fatal(err)
		}
		if right == "-hget" {
			p.Round()
		}
	}
	if err := p.Rule("none").Ask(background, []byte("a"), netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if !redistest.WaitUntil(func() bool { return !p.Rule("none").MayHave() }, patient) {
		t.Errorf("it does not follow: %q", p.told)
	}
}

// Names that callers made up are not kept beyond a number, and still have their marks.
func TestManyNames(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		p.follow()
		for i := range 10_000 {
			p.Rule(fmt.Sprint("route", i))
		}
		late := p.Rule("r")
		if late.MayHave() {
			t.Error("there are no marks yet")
		}
		p.act("a", marks.Blocked, 0)
		if m := late.Find([]byte("a"), netip.Addr{}).Mark(); m == nil || m.Kind != marks.Blocked {
			t.Errorf("found %+v", m)
		}
		if m := late.Find([]byte("b"), netip.Addr{}).Mark(); m != nil {
			t.Errorf("found %+v", m)
		}
	})
}

// An act that Redis does not confirm is an error. It holds here for a minute, and nowhere else.
func TestAnActWithoutRedis(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Unlimited, 0)
	other.read()
	f.server.Kill()
	for subject, kind := range map[string]marks.Kind{"a": marks.Blocked, "b": marks.Banned} {
		if err := one.tryToAct(subject, kind, hour); err == nil {
			t.Fatal("there is no Redis, and no error")
		}
		one.want(subject, kind)
	}
	other.want("a", marks.Unlimited)
	other.want("b", "")
	f.pass(60 * second)
	one.want("a", marks.Unlimited)
	one.want("b", "")
}

// Operators act while Redis is full, and other processes obey.
func TestActsInAFullRedis(t *testing.T) {
	f := newFleet(t, 100)
	one, other := f.process(), f.process()
	one.act("a", marks.Blocked, 0)
	one.act("has ended", marks.Blocked, second)
	f.pass(2 * second)
	other.read()
	client := f.client()
	if err := client.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	one.act("a", marks.Removed, 0)
	one.act("b", marks.Blocked, 0)
	other.read()
	other.want("a", "")
	other.want("b", marks.Blocked)
}

// Without Redis, a mark lasts by a clock that is never set.
func TestTheClockIsSet(t *testing.T) {
	f := &fleet{T: t, most: 100}
	f.now.Store(in2065)
	p := f.process()
	p.SinceEpoch = func() int64 { return f.now.Load() - 25*hour }
	p.act("a", marks.Banned, hour)
	f.pass(hour - 1)
	p.want("a", marks.Banned)
	f.pass(1)
	p.want("a", "")
}

// Whatever Redis loses is written back, once. Acts of meanwhile win, and what was removed stays so, also
// by a process that did not know the mark, such as a command.
func TestLosses(t *testing.T) {
	for name, lose := range map[string]func(f *fleet, c *redis.Client, before map[string]string){
		"all":            func(f *fleet, c *redis.Client, _ map[string]string) { c.FlushAll(background) },
		"the hash":       func(f *fleet, c *redis.Client, _ map[string]string) { c.Del(background, "test:{%marks}:mh1") },
		"what is recent": func(f *fleet, c *redis.Client, before map[string]string) { restore(f, c, before) },
	} {
		for _, meanwhile := range []bool{true, false} {
			t.Run(fmt.Sprint(name, "/", meanwhile), func(t *testing.T) {
				f := newFleet(t, 10_000)
				client := f.client()
				one, other := f.process(), f.process()
				for i := range 700 {
					one.act(fmt.Sprint(i), marks.Blocked, 0)
				}
				one.act("removed later", marks.Blocked, 0)
				one.act("ends", marks.Blocked, hour)
				before := dump(f, client)
				for i := range 700 {
					one.act(fmt.Sprint("recent", i), marks.Banned, 3*hour)
				}
				one.act("removed later", marks.Removed, 0)
				one.read()
				other.read()
				f.pass(hour)
				lose(f, client, before)
				want := 1_400
				if meanwhile {
					f.process().act("0", marks.Unlimited, 0)
					f.process().act("recent1", marks.Unbanned, 0)
					want--
				}
				other.read()
				for range 20 {
					f.pass(second)
					one.read()
					other.read()
				}
				another := f.process()
				another.read()
				for _, p := range []*process{one, other, another} {
					if n := len(p.All()); n != want {
						t.Errorf("%d marks, want %d", n, want)
					}
					p.want("removed later", "")
					p.want("ends", "")
					p.want("recent699", marks.Banned)
					if meanwhile {
						p.want("0", marks.Unlimited)
						p.want("recent1", "")
					}
				}
				another.wantTold()
			})
		}
	}
}

// dump returns the keys of the marks, as a snapshot would have them.
func dump(f *fleet, c *redis.Client) map[string]string {
	all := make(map[string]string)
	for _, key := range c.Keys(background, "*").Val() {
		all[key] = c.Dump(background, key).Val()
	}
	return all
}

// restore puts a server back to a snapshot.
func restore(f *fleet, c *redis.Client, to map[string]string) {
	c.FlushAll(background)
	for key, value := range to {
		if err := c.Restore(background, key, 0, value).Err(); err != nil {
			f.Fatal(err)
		}
	}
}
