package marks_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A subject that was refused in three windows of a second in a row is banned for ten seconds, then for
// twenty, and so on up to thirty; after these thirty without a refusal all is forgotten.
var terms = marks.Terms{Window: second, After: 3, Span: 10 * second, Longest: 30 * second}

// seconds are times in seconds since in2065.
func seconds(micro int64) float64 {
	if micro == 0 {
		return 0
	}
	return float64(micro-in2065) / float64(second)
}

// Each step is a refusal: when it was, when it was counted, and the begin and the end of the last ban
// after that.
func TestStrikes(t *testing.T) {
	type step struct{ at, now, begin, ends float64 }
	for name, steps := range map[string][]step{
		"three windows":                         {{0.5, 0.5, 0, 0}, {1.9, 1.9, 0, 0}, {2, 2, 2, 12}},
		"each once":                             {{0.5, 0.5, 0, 0}, {0.6, 0.6, 0, 0}, {0.7, 0.7, 0, 0}, {1.9, 1.9, 0, 0}, {1.9, 2.5, 0, 0}},
		"a gap":                                 {{0.5, 0.5, 0, 0}, {1.9, 1.9, 0, 0}, {3, 3, 0, 0}, {4, 4, 0, 0}, {5, 5, 5, 15}},
		"one that is late counts in its window": {{1.5, 1.5, 0, 0}, {2.5, 2.5, 0, 0}, {0.5, 3, 0.5, 10.5}},
		"during the ban":                        {{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 2, 12}, {11, 11, 2, 12}, {1.5, 11, 2, 12}},
		"the window of the ban has counted":     {{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 2, 12}, {12, 12, 2, 12}, {13, 13, 2, 12}, {14, 14, 14, 34}},
		"at most thirty seconds": {
			{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 2, 12}, {12, 12, 2, 12}, {13, 13, 2, 12}, {14, 14, 14, 34}, {34, 34, 14, 34}, {35, 35, 14, 34}, {36, 36, 36, 66},
		},
		"forgotten":              {{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 2, 12}, {42, 42, 0, 0}, {43, 43, 0, 0}, {44, 44, 44, 54}},
		"the clock stepped back": {{100, 100, 0, 0}, {101, 101, 0, 0}, {102, 102, 102, 112}, {50, 50, 50, 60}, {59, 59, 50, 60}},
	} {
		onBoth(t, 100, func(t *testing.T, f *fleet) {
			p := f.process()
			for i, s := range steps {
				f.now.Store(in2065 + int64(s.now*float64(second)))
				begin, ends, _ := p.StrikeNow("k", in2065+int64(s.at*float64(second)), &terms)
				if seconds(begin) != s.begin || seconds(ends) != s.ends {
					t.Errorf("%s, step %d: banned from %v to %v, want %v to %v", name, i, seconds(begin), seconds(ends), s.begin, s.ends)
				}
			}
		})
	}
}

// Redis and the process count any refusals alike, late ones too, and while the clock is set.
func TestStrikesAgree(t *testing.T) {
	f := newFleet(t, 100)
	redis, here := f.process(), &process{fleet: f}
	here.Set = marks.NewSet(marks.Options{Now: f.now.Load, SinceEpoch: f.now.Load, Most: 100, MostBans: 1})
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 3_000 {
		f.pass([]int64{0, 1, second / 3, second, second, 11 * second, 40 * second, -second, -3600 * second}[random.IntN(9)] % (1 + 50*second))
		terms := terms
		terms.After = 1 + int64(i/500%3)
		at := f.now.Load() - []int64{0, 0, 0, second, 2 * second}[random.IntN(5)]
		key := fmt.Sprint("k", i/500)
		var got, want [3]int64
		got[0], got[1], got[2] = redis.StrikeNow(key, at, &terms)
		want[0], want[1], want[2] = here.StrikeNow(key, at, &terms)
		if got != want {
			t.Fatalf("strike %d: Redis has %v, and the process %v", i, got, want)
		}
	}
}

// A rule's strikes lead to a mark, in every process. After an operator's removal it stays away, and
// without their strikes the subject begins anew.
func TestStrikesBan(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		strike := func(at int64, imposes bool) { p.Strike([]byte("k"), "r", []byte("a"), at, &terms, imposes) }
		banned := func() bool {
			f.pass(0)
			p.follow()
			return p.is("a") == marks.Banned
		}
		for i := range int64(3) {
			strike(f.now.Load(), true)
			strike(f.now.Load(), true)
			if i < 2 {
				f.pass(second)
			}
		}
		if !redistest.WaitUntil(banned, patient) {
			t.Fatal("three strikes, and no ban")
		}
		if all := p.All(); len(all) != 1 || all[0].Bans != 1 || !all[0].ByRule || all[0].Until != f.now.Load()+10*second {
			t.Errorf("%+v", all)
		}
		p.act("a", marks.Unbanned, 0)
		p.want("a", "")
		if _, err := p.Pardon(background, []byte("k")); err != nil {
			t.Fatal(err)
		}
		if _, ends, bans := p.StrikeNow("k", f.now.Load(), &terms); ends != 0 || bans != 0 {
			t.Errorf("after the pardon: a ban until %d, %d bans", ends, bans)
		}
		f.pass(hour)
		if struck, err := p.Pardon(background, []byte("k")); f.server == nil && struck || err != nil {
			t.Errorf("there is something to pardon after an hour, or %v", err)
		}
	})
}

// Without Redis, slots are refused by a clock that stays behind when the machine was suspended. Such
// refusals lead to a ban, too.
func TestStrikesOfSlots(t *testing.T) {
	f := &fleet{T: t, most: 100}
	f.now.Store(in2065)
	p := f.process()
	for range 3 {
		p.Strike([]byte("k"), "r", []byte("a"), f.now.Load()-hour, &terms, true)
		f.pass(second)
	}
	if got := p.is("a"); got != marks.Banned {
		t.Errorf("after three strikes, the subject is %q", got)
	}
}

// All returns marks of every kind once.
func TestAll(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, f *fleet) {
		p := f.process()
		p.act("a", marks.Banned, hour)
		p.act("a", marks.Limited, 0)
		p.act("b\xff", marks.Blocked, 0)
		p.act("c", marks.Blocked, 0)
		p.act("c", marks.Removed, 0)
		var got []string
		for _, m := range p.All() {
			got = append(got, m.Subject+" "+string(m.Kind)+" "+m.Limits)
		}
		slices.Sort(got)
		if want := []string{"a banned ", "a limited 500/m, 10000/day", "b\xff blocked "}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
