package operate_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// While Redis is down, calls do not notice and refusals wait. Top says within Timeout that Redis does
// not answer.
func TestTopWhileRedisIsDown(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second, Logger: log.Logger()})
	counter := limiter.MustCounter("api", core.PerHour(2)).WithStorePolicy(core.CountLocally(1))
	server.Kill()
	for range 12 {
		if _, err := counter.Allow(background, "a"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		flushTop(limiter)
	}
	began := time.Now()
	var failed *core.StoreError
	if _, err := operate.New(limiter).Top(background, "api", time.Minute); !errors.As(err, &failed) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v, want a *StoreError", err, time.Since(began))
	}
	server.Restart()
	var list operate.TopList
	eventually(t, "Redis answers", func() bool {
		flushTop(limiter)
		found, err := operate.New(limiter).Top(background, "api", time.Hour)
		list = found
		return err == nil && len(found.Refused) > 0
	})
	if want := []operate.TopEntry{{Rule: "api", Subject: "a", Refused: 10}}; !slices.Equal(list.Refused, want) || list.Near != nil {
		t.Errorf("the lists are %+v, want %+v", list, want)
	}
	server.Stop()
	began = time.Now()
	_, err := operate.New(limiter).Top(background, "api", time.Minute)
	took := time.Since(began)
	server.Continue()
	if !errors.As(err, &failed) || took > 10*time.Second {
		t.Errorf("%v after %v, want a *StoreError", err, took)
	}
	if log.Count("refused subjects") > 0 {
		t.Error(log.String())
	}
}

// Without the right to the keys, the lists are off. The log says so once, and calls are decided as
// before.
func TestTopWithoutTheRight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.UserWith(t, "~accesslimit:{a*", "+@all")})
	counter := limiter.MustCounter("api", core.PerHour(2))
	for i := range 6 {
		d, err := counter.Allow(background, "a")
		if err != nil || d.Allowed != (i < 2) {
			t.Errorf("%v, %v", d, err)
		}
		flushTop(limiter)
	}
	if _, err := operate.New(limiter).Top(background, "api", time.Minute); !isRefused(err) {
		t.Errorf("%v, want that Redis refuses", err)
	}
	limiter.Close()
	if log.Count("refused subjects are off", failure.RightsPage) != 1 || log.Count("refused subjects") != 1 {
		t.Error(log.String())
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
