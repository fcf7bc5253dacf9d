package core_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/redis/go-redis/v9"
)

var log3 = core.Limit{Max: 3, Window: time.Hour, Algorithm: core.SlidingLog}

func noted(t testing.TB, limiter *core.Limiter, limit core.Limit, n int, note string) core.Decision {
	t.Helper()
	d, err := limiter.MustLog("n", limit).AllowN(background, "s", n, note)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func records(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) []core.Record {
	t.Helper()
	got, err := limiter.MustLog("n", limit).Records(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// notes returns the notes of the records, newest first.
func notes(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) (notes []string) {
	t.Helper()
	for _, r := range records(t, limiter, subject, limit) {
		notes = append(notes, r.Note)
	}
	return notes
}

// Callers may send any note. It is kept short, in whole characters, and as valid UTF-8.
func TestNotesAreCut(t *testing.T) {
	full := strings.Repeat("x", 256)
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for name, test := range map[string]struct{ given, kept string }{
			"empty":                      {"", ""},
			"as long as can be":          {full, full},
			"a byte more":                {full + "y", full},
			"a megabyte":                 {strings.Repeat("x", 1<<20), full},
			"cut in a character of 2":    {full[:255] + "ü", full[:255]},
			"cut in a character of 3":    {full[:254] + "€", full[:254]},
			"cut in a character of 4":    {full[:253] + "😀!", full[:253]},
			"cut behind one of 4":        {full[:252] + "😀!", full[:252] + "😀"},
			"invalid":                    {"a\xffb", "a\uFFFDb"},
			"half a character":           {"a\xf0\x9f", "a\uFFFD"},
			"invalid to the end":         {strings.Repeat("\x80", 1<<20), "\uFFFD"},
			"that grows by being mended": {strings.Repeat("\xffa", 1<<19), strings.Repeat("\uFFFDa", 64)},
			"binary":                     {"\x00\r\n{}", "\x00\r\n{}"},
		} {
			t.Run(name, func(t *testing.T) {
				defer func() { _, _ = resetOf(limiter, background, "n", "s", log3) }()
				noted(t, limiter, log3, 1, test.given)
				got := notes(t, limiter, "s", log3)
				if len(got) != 1 || got[0] != test.kept || len(got[0]) > 256 || !utf8.ValidString(got[0]) {
					t.Errorf("kept %q, want %q", got, test.kept)
				}
			})
		}
	})
}

// A rule's note is cut too, and is kept after the memory of the call is used for another.
func TestNotesOfARuleAreCutCopies(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	path := bytes.Repeat([]byte("x"), 1<<20)
	rule := core.Rule{Name: "n", Limit: core.PerHour(3).Log(), Note: core.Request.Path}
	guard := newGuard(t, limiter, rule)
	for _, length := range []int{10, len(path)} {
		v := newView("GET", "/")
		v.URLPath = unsafe.String(&path[0], length)
		wantServed(t, guard, v, ok, 200)
	}
	copy(path, "what another caller sent")
	if got := notes(t, limiter, me, log3); !slices.Equal(got, []string{strings.Repeat("x", 256), "xxxxxxxxxx"}) {
		t.Errorf("%q", got)
	}
}

// A shared rule beside a rule by user keeps its notes, each made once, and warns of calls without an
// address. With Redis, such a call first repeats a remembered refusal of the shared rule, if there is one.
func TestASharedRuleBesideARuleByUser(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var log logtest.Log
		options.Logger, options.Identify = log.Logger(), whoSays
		limiter, made := newLimiter(t, options), 0
		note := func(core.Request) string { made++; return strconv.Itoa(made) }
		guard := newGuard(t, limiter,
			core.Rule{Name: "n", Limit: log3, Note: note}, core.Rule{Name: "user", Seconds: 3600, MaxCount: 5, NeedLogin: true})
		for range 2 {
			wantStatus(t, guard, newView("GET", "/").From("").As("alice"), 200)
		}
		if got := notes(t, limiter, "ip:unknown", log3); !slices.Equal(got, []string{"2", "1"}) {
			t.Errorf("%q", got)
		}
		warned(t, &log, 1, "level=WARN", "rule=n", "ip:unknown")
	})
}

// No note is made for a call that is not counted.
func TestNoNoteOfUncountedCalls(t *testing.T) {
	note := func(core.Request) string { t.Error("a note was made"); return "" }
	unlimited := core.Rule{
		Name: "unlimited", Limit: core.PerHour(5).Log(), Note: note, Plans: map[string]core.Limit{"pro": core.Unlimited}, Plan: planOf("pro"),
	}
	free := core.Rule{Name: "free", Limit: core.PerHour(5).Log(), Note: note, Cost: cost(0)}
	wantStatus(t, newGuard(t, newLimiter(t, core.Options{}), unlimited, free), newView("GET", "/"), 200)
}

// inFakeTime runs a test whose waits take no real time, with a limiter that counts in this process.
func inFakeTime(t *testing.T, test func(t *testing.T, limiter *core.Limiter)) {
	synctest.Test(t, func(t *testing.T) { test(t, newLimiter(t, core.Options{})) })
}

// wantTurn reserves a permit and checks how long until its turn.
func wantTurn(t testing.TB, limiter *core.Limiter, limit core.Limit, want time.Duration) core.Decision {
	t.Helper()
	d, err := limiter.MustPacer("n", limit).Reserve(background, "s", 1)
	if err != nil || !d.Allowed || d.Wait != want {
		t.Fatalf("%+v, %v; want a turn in %v", d, err, want)
	}
	return d
}

// Without a deadline Acquire waits for a minute at most.
func TestAcquireWaitsForAMinuteAtMost(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		limit := core.PerMinute(1).Bucket(1)
		wantTurn(t, limiter, limit, 0)
		start := time.Now()
		if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 1); err != nil || !d.Allowed || time.Since(start) != time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(start), d, err)
		}
		wantTurn(t, limiter, limit, time.Minute)
		if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 1); err != nil || d.Allowed || d.RetryAfter != time.Minute {
			t.Errorf("%+v, %v", d, err)
		}
		patient, cancel := context.WithTimeout(background, 2*time.Minute+time.Second)
		defer cancel()
		start = time.Now()
		if d, err := limiter.MustPacer("n", limit).Acquire(patient, "s", 1); err != nil || !d.Allowed || time.Since(start) != 2*time.Minute {
			t.Errorf("with a later deadline, after %v: %+v, %v", time.Since(start), d, err)
		}
	})
}

// A failing shard does not prevent releasing the slots of the same call on another one.
func TestASickShardDoesNotAffectSlotsOnOthers(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = time.Hour }) // it takes no server out of the ring
	limiter, nodes := newLimiter(t, core.Options{Redis: client, Timeout: patient}), ring.Nodes()
	subjects := []string{subjectOn(t, nodes[0], limiter, "one"), subjectOn(t, nodes[1], limiter, "other")}
	one, other := atOnceAs("one", 1), atOnceAs("other", 1)
	one.Key, other.Key = key(subjects[0]), key(subjects[1])
	guard := newGuard(t, limiter, one, other)
	for i, sick := range nodes {
		answer := wantStatus(t, guard, newView("GET", "/"), 200)
		sick.Stop()
		var call sync.WaitGroup
		call.Go(func() { answer.Run(func() int { return 200 }) })
		for _, at := range []int{1 - i, i} {
			eventually(t, "the slot is free", func() bool {
				d, err := peek(limiter, background, []string{"one", "other"}[at], subjects[at], one.Limit)
				return err == nil && d.Remaining == 1
			})
			sick.Continue()
		}
		call.Wait()
	}
}

// A rule with a Lease takes permits in advance, as a set says now.
func TestARuleTakesALease(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	leased := change(named("n", core.PerHour(3200)), func(r *core.Rule) { r.Lease = 100 })
	set := newRuleSet(t, limiter, named("n", core.PerHour(3200)))
	guard := set.MustGuard("n")
	mustReplace(t, set, leased)
	for range 200 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	if trips := limiter.Stats().Trips; trips > 150 {
		t.Errorf("%d trips: nothing was leased", trips)
	}
}

// hold takes a slot, which must be free.
func hold(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) (release func()) {
	t.Helper()
	release, d, err := holdBy(limiter, background, "n", subject, limit)
	if err != nil || !d.Allowed {
		t.Fatalf("Hold: %+v, %v", d, err)
	}
	return release
}

// Holds leave no goroutine behind, though some were being renewed and one is never released: the
// bubble would not end.
func TestHoldsLeaveNoGoroutine(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		many := core.Limit{Max: 100, Window: time.Second, Algorithm: core.Concurrency}
		var held []func()
		for range 50 {
			held = append(held, hold(t, limiter, "s", many))
		}
		time.Sleep(many.Window / 3) // they are being renewed
		for _, release := range held[1:] {
			release()
		}
	})
}
