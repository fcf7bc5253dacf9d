package knownbans_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	second = int64(1_000_000)
	hour   = 3600 * second
)

var errDown = errors.New("down")

func newTable(most int) *knownbans.Table {
	c := new(clock.Expiry)
	c.Start()
	return knownbans.New(c, most)
}

func wantLasts(t *testing.T, table *knownbans.Table, key string, want int64) {
	t.Helper()
	if got := table.Lasts([]byte(key)); got != want {
		t.Errorf("%s lasts %d µs, want %d", key, got, want)
	}
}

// ban returns a ban, and a counter that it watches.
func ban(byHandOnly bool) []algorithm.Counter {
	after := int64(3)
	if byHandOnly {
		after = 0
	}
	imposed, limit := algorithm.Banned(after, hour, hour, hour), algorithm.Windowed(algorithm.FixedWindow, 5, hour)
	return []algorithm.Counter{{Key: []byte("counter"), Limit: &limit, Cost: 1}, {Key: []byte("ban"), Limit: &imposed, Watched: []int{0}}}
}

// answered returns verdicts on these counters, as the store gives them at a time.
func answered(at, banLasts int64) []algorithm.Verdict {
	return []algorithm.Verdict{{At: at, Remaining: 4}, {At: at, RetryAfter: banLasts}}
}

func failed() []algorithm.Verdict { return []algorithm.Verdict{{Err: errDown}, {Err: errDown}} }

// A ban ends at its end, by the clock of this process. The wait that it tells is that of the store's
// clock, however far that is ahead or behind.
func TestABanEndsAtItsEnd(t *testing.T) {
	for _, ahead := range []int64{0, 300 * second, -hour} {
		synctest.Test(t, func(t *testing.T) {
			table, counters := newTable(10), ban(false)
			storeTime := func() int64 { return time.Now().UnixMicro() + ahead }
			table.Observe(counters, answered(storeTime(), 10*second), table.Begin())
			time.Sleep(4 * time.Second)
			verdicts := failed()
			table.StandIn(counters, verdicts)
			want := algorithm.Verdict{At: storeTime(), RetryAfter: 6 * second, From: algorithm.FromRefusal}
			if verdicts[0] != want || verdicts[1] != want {
				t.Errorf("%d µs ahead: %+v, want %+v twice", ahead, verdicts, want)
			}
			time.Sleep(6*time.Second - time.Microsecond)
			wantLasts(t, table, "ban", 1)
			time.Sleep(time.Microsecond)
			wantLasts(t, table, "ban", 0)
			verdicts = failed()
			if table.StandIn(counters, verdicts); verdicts[0].Err == nil || verdicts[1].Err == nil {
				t.Errorf("a ban that has ended decided: %+v", verdicts)
			}
		})
	}
}

// An answer without the ban removes it, but not if it was asked for before the ban was known. An
// answer with the ban adds none that was lifted after it was asked for.
func TestAnswersOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, counters := newTable(10), ban(true)
		step := func() int64 {
			time.Sleep(time.Millisecond)
			return table.Begin()
		}
		early := step()
		step()
		table.Remember([]byte("ban"), hour, true)
		table.Observe(counters, answered(0, 0), early)
		wantLasts(t, table, "ban", hour)
		table.Observe(counters, answered(0, 0), step())
		wantLasts(t, table, "ban", 0)

		table.Remember([]byte("ban"), hour, true)
		early = step()
		step()
		table.Lift([]byte("ban"))
		table.Observe(counters, answered(0, hour), early)
		wantLasts(t, table, "ban", 0)
		table.Observe(counters, answered(0, hour), step())
		wantLasts(t, table, "ban", hour)
	})
}

// The store's own answers stay as they are, and nothing stands in for a caller who has left.
func TestAnswersOfTheStoreStay(t *testing.T) {
	table, counters := newTable(10), ban(true)
	table.Remember([]byte("ban"), hour, true)
	for name, verdicts := range map[string][]algorithm.Verdict{
		"answered": answered(1, 0),
		"has left": {{Err: errDown}, {Ended: errDown}},
	} {
		want := [2]algorithm.Verdict(verdicts)
		if table.StandIn(counters, verdicts); [2]algorithm.Verdict(verdicts) != want {
			t.Errorf("%s: %+v, want %+v", name, verdicts, want)
		}
	}
}

// The table is bounded. Bans by rules evict no operator's, and of each kind those go first that end
// soon.
func TestTheTableIsBounded(t *testing.T) {
	const most = 50
	table := newTable(most)
	for i := range most {
		table.Remember(fmt.Append(nil, "operator", i), hour, true)
	}
	for i := range 1000 {
		table.Remember(fmt.Append(nil, "rule", i), int64(1+i%100)*hour, false)
	}
	if got := len(table.Unconfirmed(table.Begin()+1, 10_000)); got != 2*most {
		t.Errorf("the table has %d entries, want %d", got, 2*most)
	}
	for i := range most {
		if table.Lasts(fmt.Append(nil, "operator", i)) == 0 {
			t.Errorf("operator%d was evicted", i)
		}
	}
	table.Remember([]byte("rule999"), hour, true) // that it is an operator's is learnt later
	table.Remember([]byte("rule999"), hour, false)
	for i := range 1000 {
		table.Remember(fmt.Append(nil, "more", i), 1000*hour, false)
	}
	if table.Lasts([]byte("rule999")) == 0 {
		t.Error("a ban that became an operator's was evicted by those of rules")
	}
}

// Only what was not confirmed since is looked at again, and what has ended is removed.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(10)
		table.Remember([]byte("short"), second, true)
		table.Remember([]byte("old"), hour, true)
		time.Sleep(time.Second)
		began := table.Begin()
		table.Remember([]byte("new"), algorithm.Forever, false)
		if got := table.Unconfirmed(began, 10); len(got) != 1 || got[0] != "old" {
			t.Errorf("%q", got)
		}
		if got := table.Unconfirmed(began+hour*1000, 1); len(got) != 1 {
			t.Errorf("%q", got)
		}
		wantLasts(t, table, "new", algorithm.Forever)
		wantLasts(t, table, "short", 0)
	})
}

// However many bans by operators are to be checked, rules' bans are checked too.
func TestRulesBansAreCheckedBesideMany(t *testing.T) {
	table := newTable(1000)
	for i := range 500 {
		table.Remember(fmt.Appendf(nil, "operator%d", i), hour, true)
	}
	table.Remember([]byte("rule"), hour, false)
	if keys := table.Unconfirmed(math.MaxInt64, 100); len(keys) != 51 || !slices.Contains(keys, "rule") {
		t.Errorf("%d keys are to be checked: %v", len(keys), keys)
	}
}

// A block that an operator has set, or may have set, is known until another override replaces it or
// it is removed. A nil table knows nothing.
func TestNoteOverride(t *testing.T) {
	key := []byte("key")
	blocked := &algorithm.Override{What: algorithm.OverrideBlocked}
	lifted := &algorithm.Override{What: algorithm.OverrideUnlimited}
	lost := &failure.Error{Class: failure.Lost, Err: errDown}
	down := &failure.Error{Class: failure.Unreachable, Err: errDown}
	table := newTable(10)
	for _, step := range []struct {
		set  *algorithm.Override
		err  error
		want int64
	}{
		{blocked, down, 0},
		{blocked, lost, algorithm.Forever},
		{lifted, lost, algorithm.Forever},
		{lifted, nil, 0},
		{blocked, nil, algorithm.Forever},
		{nil, down, algorithm.Forever},
		{nil, nil, 0},
	} {
		table.NoteOverride(key, step.set, step.err)
		wantLasts(t, table, "key", step.want)
	}
	var none *knownbans.Table
	none.NoteOverride(key, blocked, nil)
	none.Lift(key)
	wantLasts(t, none, "key", 0)
}
