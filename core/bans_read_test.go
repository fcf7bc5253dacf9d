package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// strict bans a subject that is refused once.
var strict = core.Rule{
	Name: "n", Limit: core.PerHour(1), Ban: core.Ban{After: 1, For: time.Hour},
	Key: ofSubject,
}

// A ban that a rule imposes holds as well, and one that a process met only as a strike of its own.
func TestBansByRulesOutlastAnOutage(t *testing.T) {
	o := oneServer(t)
	process := func() *core.Limiter { return newLimiter(t, core.Options{Redis: o.connect(t), Timeout: patient}) }
	imposing, met, read := process(), process(), process()
	guards := []*core.Guard{newGuard(t, imposing, strict), newGuard(t, met, strict), newGuard(t, read, strict)}
	wantServed(t, guards[0], of("s"), ok, 200, 429)
	wantStatus(t, guards[1], of("s"), 429)
	if _, _, err := operate.New(imposing).Bans(background, "n", "", 10); err != nil { // so that the ban is in the list
		t.Fatal(err)
	}
	if err := core.ReadBanLists(read); err != nil {
		t.Fatal(err)
	}
	o.begin()
	for i, guard := range guards {
		if a := guard.Check(of("s")); status(a) != 429 || a.Refusal.Decision.Reason != core.Banned {
			t.Errorf("process %d: %+v", i, a.Refusal)
		}
	}
}

// Without the right to read the lists, the log says once that this is off, and nothing else changes.
func TestReadingBansWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.UserWith(t, "~*", "+@all", "-zrange")})
	guard := newGuard(t, limiter, strict)
	for range 3 {
		_ = core.ReadBanLists(limiter)
	}
	if log.Count("level=WARN", "a right to read their lists", failure.RightsPage) != 1 {
		t.Error(log.String())
	}
	wantStatus(t, guard, of("s"), 200)
}

// A process reads only the lists of rules that obey bans or overrides and may refuse somebody.
func TestOnlyListsThatMatterAreRead(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	newGuard(t, limiter, core.Rule{Name: "plain", Limit: core.PerHour(5)}, banningRule("dry"), banningRule("soft"))
	newGuard(t, limiter, banningRule("open"), core.Rule{Name: "banning", Limit: core.PerHour(5), Ban: core.Ban{ByHand: true}})
	_ = limiter.MustCounter("handle", core.PerHour(5)).WithOverrides()
	banned, overridden := core.WatchedBans(limiter)
	slices.Sort(banned)
	slices.Sort(overridden)
	if !slices.Equal(banned, []string{"banning", "open"}) || !slices.Equal(overridden, []string{"handle", "open"}) {
		t.Errorf("bans of %q and overrides of %q are read", banned, overridden)
	}
}

// A process reads the lists by itself, soon after it has a rule that obeys bans, wherever that comes
// from. One without such a rule never does.
func TestListsAreReadInTheBackground(t *testing.T) {
	server := redistest.Start(t)
	options := core.Options{Redis: server.Client(t), Timeout: patient}
	if _, err := operate.New(newLimiter(t, options)).Ban(background, "open", "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	attached, following, handling, plain := newLimiter(t, options), newLimiter(t, options), newLimiter(t, options), newLimiter(t, options)
	newGuard(t, attached, banningRule("open"))
	newRuleSet(t, following, banningRule("open")).MustGuard("open")
	_ = handling.MustCounter("other", core.PerHour(5)).WithOverrides()
	newGuard(t, plain, core.Rule{Name: "open", Limit: core.PerHour(50)})
	for who, limiter := range map[string]*core.Limiter{"attached": attached, "following": following} {
		eventually(t, who+" knows the ban", func() bool { return core.KnowsBan(limiter, "open", "s") })
	}
	if !core.WatchesBans(attached) || !core.WatchesBans(handling) || core.WatchesBans(plain) || core.WatchesBans(newLimiter(t, core.Options{})) {
		t.Error("the lists are read where no rule obeys them, or not where one does")
	}
}
