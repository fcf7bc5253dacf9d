package operate_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// BanOf returns what the page of Bans has, for one subject.
func TestBanOf(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		newGuard(t, limiter, byHand)
		for _, subject := range []string{"user:alice", "user:bob\x00\xff"} {
			if _, ok, err := operate.New(limiter).BanOf(background, "n", subject); ok || err != nil {
				t.Errorf("before the ban: %v, %v", ok, err)
			}
			if _, err := operate.New(limiter).Ban(operate.WithActor(background, "bob", "ticket 7"), "n", subject, time.Hour); err != nil {
				t.Fatal(err)
			}
			page, _, err := operate.New(limiter).Bans(background, "n", "", 10)
			if err != nil {
				t.Fatal(err)
			}
			ban, ok, err := operate.New(limiter).BanOf(background, "n", subject)
			if want := page[len(page)-1]; err != nil || !ok || ban != want || ban.Author != "bob" || ban.Subject != subject {
				t.Errorf("BanOf returns %+v, %v, %v, want %+v", ban, ok, err, want)
			}
			if _, ok, err := operate.New(limiter).BanOf(background, "other", subject); ok || err != nil {
				t.Errorf("of another rule: %v, %v", ok, err)
			}
		}
		if _, err := operate.New(limiter).Unban(background, "n", "user:alice"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := operate.New(limiter).BanOf(background, "n", "user:alice"); ok || err != nil {
			t.Errorf("after the ban: %v, %v", ok, err)
		}
	})
}
