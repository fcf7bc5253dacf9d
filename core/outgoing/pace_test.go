package outgoing_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// A server that announces less than the rule gets at most what it allows in each window. What it
// announces never makes calls faster than the rule, and a long window is not spread.
func TestTheServerLowersThePace(t *testing.T) {
	for name, test := range map[string]struct {
		header []string
		calls  int // that are sent within 10 seconds, beside the first ones
	}{
		"nothing":             {nil, 1000},
		"as much":             {[]string{"RateLimit-Policy", `"a";q=105;w=1`}, 1000},
		"more":                {[]string{"RateLimit-Policy", `"a";q=1000;w=1`}, 1000},
		"half":                {[]string{"RateLimit-Policy", `"a";q=53;w=1`}, 500},
		"half, draft 7":       {[]string{"RateLimit-Policy", `53;w=1`}, 500},
		"half, draft 6":       {[]string{"RateLimit-Limit", `53, 53;w=1`}, 500},
		"the strictest":       {[]string{"RateLimit-Policy", `"a";q=53;w=1, "b";q=27;w=1`}, 250},
		"in a long window":    {[]string{"RateLimit-Policy", `"a";q=53;w=3600`}, 1000},
		"of bytes":            {[]string{"RateLimit-Policy", `"a";q=53;w=1;qu="content-bytes"`}, 1000},
		"without a window":    {[]string{"RateLimit-Policy", `"a";q=53`}, 1000},
		"nothing allowed":     {[]string{"RateLimit-Policy", `"a";q=0;w=1`}, 1000},
		"not to be read":      {[]string{"RateLimit-Policy", `q=;;`}, 1000},
		"a window of nothing": {[]string{"RateLimit-Policy", `"a";q=53;w=0`}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, outgoing.Rule{Limit: core.PerSecond(100).Bucket(4)}, func(t *testing.T, turns *outgoing.Turns) {
				through, sent := turns.Transport(replies(200, test.header...)), 0
				for began := time.Now(); time.Since(began) < 10*time.Second; sent++ {
					send(t, through, url)
				}
				if sent < test.calls || sent > test.calls+6 {
					t.Errorf("%d calls were sent, want about %d", sent, test.calls)
				}
			})
		})
	}
}

// The pace is the rule's again when the server allows more, or says nothing for a minute.
func TestThePaceRecovers(t *testing.T) {
	for name, test := range map[string]struct {
		then sender
		wait time.Duration
	}{
		"allows more": {replies(200, "RateLimit-Policy", `"a";q=1000;w=1`), 0},
		"is silent":   {replies(200), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, outgoing.Rule{Limit: core.PerSecond(10).Bucket(10)}, func(t *testing.T, turns *outgoing.Turns) {
				for _, next := range []sender{replies(200, "RateLimit-Policy", `"a";q=1;w=1`), test.then} {
					send(t, turns.Transport(next), url)
				}
				time.Sleep(test.wait + 2*time.Second)
				wantTook(t, 0, func() {
					for range 10 {
						take(t, turns, "api.example.com").Release()
					}
				})
			})
		})
	}
}

// A server that allows few calls in a short window gets about as many, although the rule's window is
// longer and its bucket larger.
func TestFewCallsInAShortWindow(t *testing.T) {
	for header, took := range map[string]time.Duration{
		`"a";q=1;w=1`: 3 * time.Second, `"a";q=2;w=1`: 3 * time.Second, `"a";q=3;w=1`: 3 * time.Second, `"a";q=1;w=60`: 3 * time.Minute,
		`"a";q=2;w=1, "b";q=3;w=20`: time.Minute,
	} {
		t.Run(header, func(t *testing.T) {
			virtually(t, outgoing.Rule{Limit: core.PerHour(3600).Bucket(50), MaxWait: 24 * time.Hour}, func(t *testing.T, turns *outgoing.Turns) {
				through := turns.Transport(replies(200, "RateLimit-Policy", header))
				wantTook(t, took, func() {
					for range 4 {
						send(t, through, url)
					}
				})
			})
		})
	}
}
