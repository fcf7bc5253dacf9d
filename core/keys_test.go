package core_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/promise"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// During a rolling deploy, an older or newer version may keep the same state in another layout.
// Each layout has keys of its own, and neither version reads the other's.
func TestLayoutsHaveKeysOfTheirOwn(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	ctx := context.Background()
	for _, algorithm := range promise.Algorithms() {
		limit := core.Limit{Max: 2, Window: time.Hour, Algorithm: algorithm}
		key := core.CounterKey("accesslimit", "user:alice", "reply", limit)
		other := regexp.MustCompile(`:([a-z]+)[0-9]:`).ReplaceAllString(key, ":${1}9:")
		if other == key {
			t.Fatalf("%s names no layout", key)
		}
		if err := client.Set(ctx, other, "a state of another version", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		for left := 1; left >= 0; left-- {
			d, err := limiter.MustCounter("reply", limit).Allow(ctx, "user:alice")
			if err != nil || d.Remaining != left {
				t.Errorf("%v: %+v, %v; want %d left", algorithm, d, err, left)
			}
		}
		if state := client.Get(ctx, other).Val(); state != "a state of another version" {
			t.Errorf("%v: the other version finds %q", algorithm, state)
		}
	}
}

// wantApart checks that of two callers with one call each, neither is charged for the other's.
func wantApart(t *testing.T, guard *core.Guard, one, other adapter.View) {
	t.Helper()
	wantStatus(t, guard, one, 200)
	wantStatus(t, guard, other, 200)
	wantStatus(t, guard, one, 429)
	wantStatus(t, guard, other, 429)
}

// One counter per URL was shared by all users, and one client could lock out the rest.
func TestUsersDoNotShareACounter(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		byUser := core.Rule{Seconds: 3600, MaxCount: 1, NeedLogin: true}
		wantApart(t, newGuard(t, limiter, byUser), newView("GET", "/user").as("alice"), newView("GET", "/user").as("bob"))
		byIP := core.Rule{Seconds: 3600, MaxCount: 1}
		wantApart(t, newGuard(t, limiter, byIP), newView("GET", "/ip").from("192.0.2.1"), newView("GET", "/ip").from("192.0.2.2"))
	})
}

// A caller's text in a key (a closing brace, a hash tag) chose the cluster slot, and with two keys
// caused an error.
func TestKeysOfOneCallShareASlotWhateverTheSubject(t *testing.T) {
	cluster := redistest.StartCluster(t).Client(t)
	limiter := newLimiter(t, core.Options{Redis: cluster, Timeout: patient})
	rule := core.Rule{
		Name: "}{n}", Seconds: 3600, MaxCount: 1, Also: []core.Limit{core.PerDay(10), core.PerMinute(5).Bucket(5)},
		Ban: core.Ban{After: 1, For: time.Hour}, OnStoreError: core.FailClosed,
	}
	for i, subject := range []string{"}evil}", "{}", "{a}{b}", "}", "\r\n", "plain"} {
		rule.Key = key(subject)
		rule.Name = fmt.Sprint("}{", i)
		guard := newGuard(t, limiter, rule)
		wantStatus(t, guard, newView("GET", "/"), 200)
		answer := wantStatus(t, guard, newView("GET", "/"), 429)
		if answer.Refusal.Decision.Reason != core.Banned {
			t.Errorf("%q: %+v", subject, answer.Refusal.Decision)
		}
	}
}

// Some scripts took arguments as keys, or keys as arguments. A cluster routes by the keys alone,
// and refuses or misses the others.
func TestOnlyKeysArePassedAsKeys(t *testing.T) {
	client := atWallClock(redistest.Start(t).Client(t))
	var calls atomic.Int32 // some are made in the background
	client.before = func(args []any) {
		if args[0] != "evalsha" {
			return
		}
		calls.Add(1)
		for _, arg := range args[3 : 3+args[2].(int)] {
			if key, ok := arg.(string); !ok || !strings.HasPrefix(key, "accesslimit:{user:a}:") && !strings.HasPrefix(key, "accesslimit:{%") {
				t.Errorf("passed as a key: %v", arg)
			}
		}
		for _, arg := range args[3+args[2].(int):] {
			if text, ok := arg.(string); ok && strings.Contains(text, "{") {
				t.Errorf("a key among the arguments: %s", text)
			}
		}
	}
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	bucket, log := core.PerMinute(1).Bucket(9), core.Limit{Max: 1, Window: time.Minute, Algorithm: core.SlidingLog}
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 60, Also: []core.Limit{bucket, log}, Ban: core.Ban{ByHand: true}, Key: key("user:a")})
	wantStatus(t, guard, newView("GET", "/"), 200)
	if err := limiter.Refund(background, took(t, limiter, bucket, 1), 1); err != nil {
		t.Fatal(err)
	}
	release, _, err := limiter.MustSlots("n", 1).Hold(background, "user:a")
	if err != nil {
		t.Fatal(err)
	}
	release()
	_, _ = limiter.MustPacer("n", bucket).Reserve(background, "user:a", 1)
	_, _ = limiter.MustLog("n", log).Records(background, "user:a")
	if _, err := operate.New(limiter).Ban(background, "n", "user:a", time.Hour); err != nil || calls.Load() < 8 {
		t.Errorf("%v after %d scripts, want at least 8", err, calls.Load())
	}
}

// Parts joined without escaping gave two pairs one key: ("a", "b:c") and ("a:b", "c").
func TestJoinedKeysDoNotAlias(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	joined := core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: core.Join(core.ByValue("tenant"), core.ByValue("account"))}
	guard := newGuard(t, limiter, joined)
	of := func(tenant, account string) *fakeView {
		v := newView("GET", "/")
		v.values["tenant"], v.values["account"] = tenant, account
		return v
	}
	for i, pair := range [][4]string{{"a", "b:c", "a:b", "c"}, {"a|value:b", "c", "a", "b|value:c"}, {"d%7C", "e", "d|", "e"}, {"f", "gvalue:h", "fvalue:g", "h"}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { wantApart(t, guard, of(pair[0], pair[1]), of(pair[2], pair[3])) })
	}
}

// API keys that differ in case shared a bucket, because header values were lower-cased.
func TestKeysThatDifferInCaseAreTwo(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	for _, by := range []core.KeyFunc{core.ByHeader("X-Api-Key"), core.ByUser, core.ByValue("user")} {
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: by})
		wantApart(t, guard, newView("GET", "/").with("X-Api-Key", "sEcret").as("Alice"), newView("GET", "/").with("X-Api-Key", "secret").as("alice"))
	}
}

// Keys were distinguished by 64 bits of an unkeyed hash, for which anybody can find a collision.
func TestLongKeysDifferIn128Bits(t *testing.T) {
	seen := make(map[string]bool)
	for i := range 1000 {
		k := core.CounterKey("p", strings.Repeat("x", 100)+fmt.Sprint(i), "n", core.PerMinute(1))
		tag := checkKey(t, k)
		if seen[tag] || len(tag) != 1+128/4 {
			t.Fatalf("the tag %s", tag)
		}
		seen[tag] = true
	}
}

// A limit by a value that the service had set looked the value up in the headers, which callers
// write.
func TestValuesAreNotReadFromHeaders(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: core.ByValue("plan")})
	wantStatus(t, guard, newView("GET", "/").with("Plan", "a").with("plan", "a"), 200)
	wantStatus(t, guard, newView("GET", "/").with("Plan", "b").with("plan", "b"), 429)
}

// IPv4-mapped IPv6 addresses were cut to a prefix before they were unmapped. All of them were one
// client, and one call too many refused everybody.
func TestMappedIPv4ClientsAreNotOneClient(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 1})
	wantApart(t, guard, newView("GET", "/").from("::ffff:192.0.2.1"), newView("GET", "/").from("::ffff:198.51.100.1"))
	wantStatus(t, guard, newView("GET", "/").from("192.0.2.1"), 429)
}

// A client that used one address after another of its own network was a new client each time.
func TestRotatingThroughA64IsOneClient(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 2})
	for i, want := range []int{200, 200, 429, 429} {
		wantStatus(t, guard, newView("GET", "/").from(fmt.Sprintf("2001:db8:1:2:%x::%x", 4096*i, i)), want)
	}
	wantStatus(t, guard, newView("GET", "/").from("2001:db8:1:3::1"), 200)
}

// A refusal was sent with status 200, and clients that looked at the status went on.
func TestRefusalIsNot200(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 1})
	wantStatus(t, guard, newView("GET", "/"), 200)
	refusal := wantStatus(t, guard, newView("GET", "/"), 429).Refusal
	if refusal.Code != 8 || refusal.Wait <= 0 || len(refusal.Body) == 0 {
		t.Errorf("%+v", refusal)
	}
}

// A framework's string was a view of its buffer, which the next call overwrote. A key that kept the
// string became another client's key.
func TestKeysAreCopiedFromTheCall(t *testing.T) {
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note})
	buffer, subjects := []byte("user:a"), []string{"user:a", "user:b", "user:c"}
	view := core.KeyFunc(func(core.Request) (string, error) { return unsafe.String(&buffer[0], len(buffer)), nil })
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: view})
	for _, subject := range subjects {
		copy(buffer, subject)
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	for i, subject := range subjects {
		if got := heard.heard[i].Key; got != subject {
			t.Errorf("decision %d is now about %s, was about %s", i, got, subject)
		}
		wantLeft(t, limiter, "n", subject, core.PerHour(1), 0)
	}
}
