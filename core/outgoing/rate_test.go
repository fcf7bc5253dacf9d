package outgoing_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// limiting is a server that allows a number of calls a second, and whose replies take 20 ms.
type limiting struct {
	rate, burst float64 // of its bucket; without a burst it counts in windows of a second
	strict      bool    // it counts the calls of the last second, whenever that began
	jitter      time.Duration
	hints       func(status int, left float64, wait, full time.Duration) (header []string)

	mu                sync.Mutex
	left              float64
	at                time.Time
	answered, refused int
	last              []time.Time // of a strict server: when it answered
}

// RoundTrip implements http.RoundTripper.
func (s *limiting) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10*time.Millisecond + rand.N(s.jitter+1))
	status, header := s.decide(time.Now())
	time.Sleep(10 * time.Millisecond)
	return replies(status, header...)(r)
}

func (s *limiting) decide(now time.Time) (status int, header []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, full := s.refill(now)
	if s.left < 1 {
		s.refused++
		return 429, s.hints(429, 0, wait, full)
	}
	s.left--
	s.last = append(s.last, now)
	s.answered++
	return 200, s.hints(200, s.left, 0, full)
}

// refill returns how long it takes until a call is allowed, and until as many as possible are.
func (s *limiting) refill(now time.Time) (wait, full time.Duration) {
	defer func() { s.at = now }()
	if s.strict {
		s.last = slices.DeleteFunc(s.last, func(at time.Time) bool { return now.Sub(at) >= time.Second })
		s.left = s.rate - float64(len(s.last))
		return time.Second, time.Second
	}
	if s.burst == 0 {
		if next := now.Truncate(time.Second); s.at.Before(next) {
			s.left = s.rate
		}
		wait = now.Truncate(time.Second).Add(time.Second).Sub(now)
		return wait, wait
	}
	s.left = min(s.burst, s.left+now.Sub(s.at).Seconds()*s.rate)
	after := func(calls float64) time.Duration {
		return time.Duration((calls - s.left) / s.rate * float64(time.Second))
	}
	return after(1), after(s.burst)
}

// counts returns what was counted since the last time.
func (s *limiting) counts() (answered, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answered, refused = s.answered, s.refused
	s.answered, s.refused = 0, 0
	return answered, refused
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// manyHints are what servers say about their limits.
var manyHints = map[string]func(status int, left float64, wait, full time.Duration) []string{
	"nothing": func(int, float64, time.Duration, time.Duration) []string { return nil },
	"Retry-After": func(status int, _ float64, wait, _ time.Duration) []string {
		if status == 200 {
			return nil
		}
		return []string{"Retry-After", wholeSeconds(wait)}
	},
	"X-RateLimit": func(_ int, left float64, _, full time.Duration) []string {
		return []string{"X-RateLimit-Remaining", strconv.Itoa(int(left)), "X-RateLimit-Reset", wholeSeconds(full)}
	},
	"RateLimit-Policy": func(_ int, left float64, _, full time.Duration) []string {
		return []string{"RateLimit-Policy", `"a";q=50;w=1`, "RateLimit", `"a";r=` + strconv.Itoa(int(left)) + ";t=" + wholeSeconds(full)}
	},
}

// A server allows about half of the rule's rate, and counts in buckets or windows. Whatever it says,
// three processes with 99 workers use most of what it allows, and few calls are refused. Pauses alone,
// without a slower pace between them, would use a fifth of a small bucket, and 100 to 240 calls would be
// refused.
func TestMostOfAnUnknownRateIsUsed(t *testing.T) {
	for kind, burst := range map[string]float64{"bucket": 50, "small bucket": 5, "window": 0} {
		for name, hints := range manyHints {
			t.Run(kind+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &limiting{rate: 50, burst: burst, hints: hints, at: time.Now()}
					stop := keepCalling(t, s, core.PerSecond(97).Bucket(2))
					time.Sleep(2 * time.Minute)
					answered, refused := s.counts()
					t.Logf("%.0f %% of the rate is used, and %d calls are refused", float64(answered)/60, refused)
					if answered < 6000*40/100 || refused > 60 {
						t.Errorf("%d calls were answered and %d refused", answered, refused)
					}
					stop()
				})
			})
		}
	}
}

// A rule that leaves room for its burst and for the calls that catch up with those before them, as
// OUTGOING.md advises, is never refused, however the server counts. One exactly at the limit of a
// strict server is refused, and the pauses cost more than the room.
func TestRoomBelowTheLimitOfAServer(t *testing.T) {
	for kind, s := range map[string]*limiting{
		"any second": {rate: 50, strict: true}, "windows": {rate: 50, left: 50},
		"bucket": {rate: 50, burst: 50, left: 50}, "bucket of 3": {rate: 50, burst: 3, left: 3},
	} {
		for _, rate := range []int{50, 47} {
			var used []int
			refusals := 0
			synctest.Test(t, func(t *testing.T) {
				s := &limiting{
					rate: s.rate, burst: s.burst, strict: s.strict, left: s.left, at: time.Now(),
					jitter: 20 * time.Millisecond, hints: manyHints["Retry-After"],
				}
				stop := keepCalling(t, s, core.PerSecond(rate).Bucket(2))
				for range 10 {
					time.Sleep(6 * time.Second)
					answered, refused := s.counts()
					used, refusals = append(used, answered*100/300), refusals+refused
				}
				stop()
			})
			t.Logf("%s, %d/s: %v %% are used in 6 s each, %d calls are refused", kind, rate, used, refusals)
			if rate == 47 && (refusals > 0 || slices.Min(used) < 92) {
				t.Errorf("%s: %v %% are used, %d calls are refused", kind, used, refusals)
			}
		}
	}
}

// keepCalling calls a server from the workers of three processes, as fast as the rule lets them.
func keepCalling(t *testing.T, s http.RoundTripper, limit core.Limit) (stop func()) {
	limiter := newLimiter(t, core.Options{})
	ctx, cancel := context.WithCancel(background)
	var workers sync.WaitGroup
	for range 3 {
		through := newTurns(t, limiter, outgoing.Rule{Limit: limit, InFlight: 10}).Transport(s)
		for range 33 {
			workers.Go(func() {
				for ctx.Err() == nil {
					r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
					if response, err := through.RoundTrip(r); err == nil {
						_ = response.Body.Close()
					}
				}
			})
		}
	}
	return func() {
		cancel()
		workers.Wait()
	}
}
