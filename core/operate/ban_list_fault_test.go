package operate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// While Redis hangs, Bans says so within Timeout, and a ban that waits to be listed is listed later.
func TestBansWhileRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second})
	guard := newGuard(t, limiter, strict)
	refuse(t, guard, "s")
	server.Stop()
	began := time.Now()
	_, _, err := operate.New(limiter).Bans(background, "n", "", 10)
	took := time.Since(began)
	server.Continue()
	var failed *core.StoreError
	if !errors.As(err, &failed) || took > 10*time.Second {
		t.Fatalf("%v after %v, want a *StoreError after a second", err, took)
	}
	// The breaker lets the server rest for a while.
	eventually(t, "the ban is listed", func() bool {
		guard.Check(about("s"))
		page, _, err := operate.New(limiter).Bans(background, "n", "", 10)
		return err == nil && len(page) == 1
	})
	server.Kill()
	if _, _, err := operate.New(limiter).Bans(background, "n", "", 10); !errors.As(err, &failed) {
		t.Errorf("after Redis was lost: %v", err)
	}
}

// A user who may not touch the list decides and bans as before, and the log says once that the list
// is off.
func TestBansWithoutTheRight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	client := server.UserWith(t, "~accesslimit:{s*", "~accesslimit:{%audit}*", "+@all")
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: client})
	guard := newGuard(t, limiter, strict)
	refuse(t, guard, "s1", "s2")
	for _, subject := range []string{"s3", "s4"} {
		if changed, err := operate.New(limiter).Ban(background, "n", subject, time.Hour); !changed || err != nil {
			t.Errorf("%v, %v", changed, err)
		}
	}
	if changed, err := operate.New(limiter).Unban(background, "n", "s3"); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if _, _, err := operate.New(limiter).Bans(background, "n", "", 10); !isRefused(err) {
		t.Errorf("Bans: %v, want that Redis refuses", err)
	}
	server.UserWith(t, "~*")
	if _, err := operate.New(limiter).Ban(background, "n", "s5", time.Hour); err != nil {
		t.Error(err)
	}
	if got := bansOf(t, limiter, "n", 10); len(got) > 0 {
		t.Errorf("%v is listed within a minute after a right was missing", got)
	}
	limiter.Close()
	if log.Count("list of bans is off", failure.RightsPage) != 1 || log.Count("could not be listed") > 0 {
		t.Error(log.String())
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
