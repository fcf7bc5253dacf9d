package operate_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Bans and refusals are listed again after Redis hung.
func TestListsAfterAnOutage(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second, Logger: log.Logger()})
	guard := newGuard(t, limiter, strict)
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

// A user who may not touch the marks and the lists decides as before, and the log says once of each that
// it is off. Acts fail, and hold in this process for a minute.
func TestListsWithoutTheRight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	client := server.UserWith(t, "~accesslimit:{s*", "~accesslimit:{%audit}*", "+@all")
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: client})
	guard := newGuard(t, limiter, strict)
	refuse(t, guard, "s1")
	flushTop(limiter)
	if _, err := operate.New(limiter).Ban(background, "n", "s3", time.Hour); !isRefused(err) {
		t.Errorf("Ban: %v", err)
	}
	wantStatus(t, guard, "s3", 429)
	if _, err := operate.New(limiter).Unban(background, "n", "s3"); !isRefused(err) {
		t.Errorf("Unban: %v", err)
	}
	wantStatus(t, guard, "s3", 200)
	_, _, bans := operate.New(limiter).Bans(background, "n", "", 10)
	_, top := operate.New(limiter).Top(background, "n", time.Minute)
	if !isRefused(bans) || !isRefused(top) {
		t.Errorf("Bans: %v, and Top: %v, want that Redis refuses", bans, top)
	}
	limiter.Close()
	for _, list := range []string{"bans, blocks and overrides are not read", "refused subjects are off"} {
		if log.Count(list, failure.RightsPage) != 1 {
			t.Errorf("%s: %s", list, log.String())
		}
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
