package operate_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Bans and refusals that could not be written while Redis hung are listed later.
func TestListsAfterAnOutage(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second, Logger: log.Logger()})
	guard := newGuard(t, limiter, strict)
	refuse(t, guard, "s")
	server.Stop()
	if _, _, err := operate.New(limiter).Bans(background, "n", "", 10); !errors.Is(err, core.ErrStore) {
		t.Errorf("Bans: %v", err)
	}
	for range 3 {
		flushTop(limiter)
	}
	server.Continue()
	// The breaker lets the server rest for a while.
	eventually(t, "the ban is listed", func() bool {
		guard.Check(about("s"))
		page, _, err := operate.New(limiter).Bans(background, "n", "", 10)
		return err == nil && len(page) == 1
	})
	eventually(t, "the refusals are listed", func() bool {
		flushTop(limiter)
		list, err := operate.New(limiter).Top(background, "n", time.Hour)
		return err == nil && len(list.Refused) == 1 && list.Refused[0].Refused > 0
	})
	if log.Count("refused subjects") > 0 {
		t.Error(log.String())
	}
}

// A user who may not touch the lists decides and bans as before, and the log says once of each that it is
// off.
func TestListsWithoutTheRight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	client := server.UserWith(t, "~accesslimit:{s*", "~accesslimit:{%audit}*", "+@all")
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: client})
	guard := newGuard(t, limiter, strict)
	for _, subject := range []string{"s1", "s2"} {
		refuse(t, guard, subject)
		flushTop(limiter)
	}
	for _, act := range []func() (bool, error){
		func() (bool, error) { return operate.New(limiter).Ban(background, "n", "s3", time.Hour) },
		func() (bool, error) { return operate.New(limiter).Unban(background, "n", "s3") },
	} {
		if changed, err := act(); !changed || err != nil {
			t.Errorf("%v, %v", changed, err)
		}
	}
	_, _, bans := operate.New(limiter).Bans(background, "n", "", 10)
	_, top := operate.New(limiter).Top(background, "n", time.Minute)
	if !isRefused(bans) || !isRefused(top) {
		t.Errorf("Bans: %v, and Top: %v, want that Redis refuses", bans, top)
	}
	server.UserWith(t, "~*")
	if _, err := operate.New(limiter).Ban(background, "n", "s5", time.Hour); err != nil {
		t.Error(err)
	}
	if got := bansOf(t, limiter, "n", 10); len(got) > 0 {
		t.Errorf("%v is listed within a minute after a right was missing", got)
	}
	limiter.Close()
	for _, list := range []string{"list of bans is off", "refused subjects are off"} {
		if log.Count(list, failure.RightsPage) != 1 || log.Count("could not be listed")+log.Count("not complete") > 0 {
			t.Errorf("%s: %s", list, log.String())
		}
	}
}

// Values that others wrote to the keys of the list change no decision, and are not listed as bans.
func TestForeignBans(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()})
	guard := newGuard(t, limiter, strict)
	refuse(t, guard, "a", "b", "c", "d")
	if _, err := operate.New(limiter).Ban(operate.WithActor(background, "bob", ""), "n", "e", time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := subjectsOf(bansOf(t, limiter, "n", 10)); len(got) != 5 {
		t.Fatalf("%v", got)
	}
	earlier := "\x01\x00\x00\x00\x00\x00\x00\x03bob\x00" // the note of a ban with another end
	for _, err := range []error{
		client.Set(background, "accesslimit:{a}:n:bn1:0", "hello", 0).Err(),
		client.Del(background, "accesslimit:{b}:n:bn1:0").Err(),
		client.LPush(background, "accesslimit:{c}:n:by1", "hello").Err(),
		client.Set(background, "accesslimit:{d}:n:by1", earlier, 0).Err(),
		client.Del(background, "accesslimit:{e}:n:by1").Err(), // an older release writes none
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range bansOf(t, limiter, "n", 10) {
		causes := map[string]string{"c": "refused in 1 window", "d": "refused in 1 window", "e": "by hand"}
		if entry.Cause != causes[entry.Subject] || entry.Author != "" {
			t.Errorf("%+v", entry)
		}
	}
	inOrder, _ := rediskey.BanIndex(rediskey.Head("accesslimit"), "n")
	if err := client.Set(background, inOrder, "in the way", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if changed, err := operate.New(limiter).Ban(background, "n", "f", time.Hour); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if log.Count("could not be listed", "WRONGTYPE") != 1 {
		t.Error(log.String())
	}
	var failed *core.StoreError
	if _, _, err := operate.New(limiter).Bans(background, "n", "", 1); !errors.As(err, &failed) || failed.Class != core.StoreForeignValue {
		t.Errorf("%v, want a foreign value", err)
	}
}

// topKey returns the key of a list of a minute.
func topKey(list string, minute int64) string {
	return "accesslimit:{%top}:" + list + ":" + strconv.FormatInt(minute, 10)
}

// Values that others wrote to the keys of the lists are left out, and logged once. Lists of another
// version have other keys.
func TestForeignTopLists(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()})
	counter := limiter.MustCounter("api", core.PerHour(1))
	for range 3 {
		if _, err := counter.Allow(background, "a"); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Unix() / 60
	client.ZAdd(background, topKey("api:tr1", now), redis.Z{Score: 7, Member: "of another version"})
	wantTop(t, topOf(t, "api", limiter), operate.TopList{
		Refused: []operate.TopEntry{{Rule: "api", Subject: "a", Refused: 2}}, Near: []operate.TopEntry{{Rule: "api", Subject: "a", Used: 1}},
	})
	client.Set(background, topKey("api:tr2", now-1), "text", 0)
	for _, member := range []string{"", "a", "3:a", "-1:a", "01:ab", "1 :ab", "+1:ab"} {
		client.ZAdd(background, topKey("%all:tr2", now-1), redis.Z{Score: 7, Member: member})
	}
	for range 2 {
		for _, rule := range []string{"api", ""} {
			if got := topOf(t, rule, limiter).Refused; len(got) != 1 || got[0].Refused != 2 {
				t.Errorf("the list is %+v", got)
			}
		}
	}
	limiter.Close()
	if log.Count("refused subjects are not complete") != 2 { // at once, and how often since
		t.Error(log.String())
	}
}
