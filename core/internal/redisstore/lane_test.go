package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// crowd is a number of concurrent callers, so many that their calls leave in pipelines.
const crowd = 128

// storm makes each caller of a crowd take the counters that the function returns, so many times. It
// returns the verdicts of each call.
func (s store) storm(times int, counters func() []algorithm.Counter) (answers [][]algorithm.Verdict) {
	var mu sync.Mutex
	together(crowd, func(int) {
		for range times {
			v := s.take(context.Background(), counters()...)
			mu.Lock()
			answers = append(answers, v)
			mu.Unlock()
		}
	})
	return answers
}

// wantEachOnce checks that each call that passed got another number of remaining permits: all that
// there were, in steps of the cost.
func wantEachOnce(t *testing.T, answers [][]algorithm.Verdict, at int, most, cost int64) {
	t.Helper()
	var left []int64
	for _, v := range answers {
		switch {
		case v[at].Err != nil || v[at].Ended != nil:
			t.Fatalf("%+v", v[at])
		case passes(v[0]) && passes(v[len(v)-1]):
			left = append(left, v[at].Remaining)
		}
	}
	slices.Sort(left)
	for i, got := range left {
		if want := most%cost + int64(i)*cost; got != want {
			t.Fatalf("of %d calls that passed, number %d from the end was told %d left, want %d", len(left), i, got, want)
		}
	}
	if int64(len(left)) != most/cost {
		t.Errorf("%d calls passed, want %d", len(left), most/cost)
	}
}

func (s store) wantMerged(t *testing.T, calls int) {
	t.Helper()
	trips, decided, merged := s.Trips()
	if int(decided) != calls || merged == 0 || trips == 0 || trips >= decided {
		t.Errorf("%d trips for %d calls, %d of them merged; %d were made", trips, decided, merged, calls)
	}
	s.wantTimed(t, calls)
}

// wantTimed checks how many calls were timed.
func (s store) wantTimed(t *testing.T, calls int) {
	t.Helper()
	if found := s.Times(); found.Count != uint64(calls) || found.Sum <= 0 {
		t.Errorf("timed %+v, want %d calls", found, calls)
	}
}

// Calls that are alone take no longer together than it took to make them.
func TestTimesOfCallsAlone(t *testing.T) {
	_, client := startOne(t)
	s, limit, began := newStore(t, client, patient), daily(t, 100), time.Now()
	for range 100 {
		s.mustTake(t, counter("s", limit))
	}
	s.wantTimed(t, 100)
	if sum, took := s.Times().Sum, time.Since(began); sum > took.Seconds() {
		t.Errorf("the calls are said to have taken %v s, and took %v", sum, took)
	}
}

// Calls that share a script call are decided as if each had been made by itself: every one has its
// own remaining permits.
func TestMergedCallsHaveTheirOwnAnswers(t *testing.T) {
	_, client := startOne(t)
	for _, cost := range []int64{1, 3} {
		all := limits(t, 1000)
		calendar := algorithm.Windowed(algorithm.CalendarWindow, 1000, 366*24*3600*1_000_000)
		all["calendar window"] = &calendar
		for name, limit := range all {
			t.Run(fmt.Sprint(name, " cost ", cost), func(t *testing.T) {
				s, c := newStore(t, client, patient), counter(t.Name(), limit)
				c.Cost = cost
				answers := s.storm(10, func() []algorithm.Counter { return []algorithm.Counter{c} })
				wantEachOnce(t, answers, 0, 1000, cost)
				s.wantMerged(t, crowd*10)
				for _, v := range answers {
					if !passes(v[0]) && (v[0].RetryAfter <= 0 || v[0].Remaining != 1000%cost || v[0].At == 0) {
						t.Fatalf("a refused call was told %+v", v[0])
					}
				}
			})
		}
	}
}

// A call whose caller leaves before the pipeline does is never sent, and so never charged.
func TestAbandonedCallsAreNotSent(t *testing.T) {
	bothWays(t, func(t *testing.T, server *redistest.Server, s store) {
		limit, before := daily(t, 100), int(s.Times().Count)
		s.mustTake(t, counter("warm", limit))
		server.Stop()
		var first, others sync.WaitGroup
		for i := range crowd { // these are in flight, directly and in pipelines, and occupy every lane
			first.Go(func() {
				if v := s.take(context.Background(), counter(fmt.Sprint("first", i), limit))[0]; !passes(v) {
					t.Errorf("%+v", v)
				}
			})
		}
		wantSoon(t, "every lane is taken", func() bool { _, all := s.Waiting(); return all })
		ctx, leave := context.WithCancel(context.Background())
		for i := range crowd {
			others.Go(func() {
				if v := s.take(ctx, counter(fmt.Sprint("left", i), limit))[0]; !errors.Is(v.Ended, context.Canceled) || v.Err != nil {
					t.Errorf("%+v", v)
				}
			})
		}
		wantSoon(t, "the others wait", func() bool { n, _ := s.Waiting(); return n >= crowd })
		leave()
		others.Wait()
		server.Continue()
		first.Wait()
		s.wantTimed(t, before+1+2*crowd)
		for i := range crowd {
			if left := s.left(t, counter(fmt.Sprint("left", i), limit)); left != 100 {
				t.Errorf("number %d left before it was sent, and was charged", i)
			}
			if left := s.left(t, counter(fmt.Sprint("first", i), limit)); left != 99 {
				t.Errorf("number %d of the callers that stayed was charged %d times", i, 100-left)
			}
		}
	})
}

// A lease takes as many calls as fit, even beside other calls for the same key, and returns how
// many.
func TestLeaseTakesAsMuchAsFits(t *testing.T) {
	_, client := startOne(t)
	s := newStore(t, client, patient)
	for name, limit := range limits(t, 1000) {
		t.Run(name, func(t *testing.T) {
			c := counter(name, limit)
			c.Cost = 2
			var mu sync.Mutex
			var calls int64
			together(crowd, func(i int) {
				for range 10 {
					passed := int64(0)
					if i%2 == 0 {
						granted, v := s.lease(c, 7)
						if v.Err != nil || granted < 0 || granted > 7 || (granted == 0) != (v.RetryAfter > 0) {
							t.Errorf("granted %d: %+v", granted, v)
						}
						passed = granted
					} else if passes(s.take(context.Background(), c)[0]) {
						passed = 1
					}
					mu.Lock()
					calls += passed
					mu.Unlock()
				}
			})
			if calls != 500 || s.left(t, c) != 0 {
				t.Errorf("%d calls of two permits passed, %d permits left, want 500 and 0", calls, s.left(t, c))
			}
			c.Cost = 1
			if granted, v := s.lease(c, 5); granted != 0 || v.RetryAfter == 0 {
				t.Errorf("granted %d of nothing: %+v", granted, v)
			}
		})
	}
}

// The sum of the costs of many calls may be beyond any number that is counted exactly.
func TestMoreCallsThanCanBeCounted(t *testing.T) {
	_, client := startOne(t)
	s := newStore(t, client, patient)
	const most, window = 1_000_000_000_000, 24 * 3600 * 1_000_000
	sliding, fixed := algorithm.Windowed(algorithm.SlidingWindow, most, window), algorithm.Windowed(algorithm.FixedWindow, most, window)
	bucket, err := algorithm.Bucketed(most, most, most) // one comes back per microsecond
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []*algorithm.Limit{&sliding, &fixed, &bucket} {
		c := counter(limit.Kind.Tag(), limit)
		c.Cost = most / 5 * 2
		if granted, v := s.lease(c, 1<<50); granted != 2 || v.Remaining/c.Cost != 0 || v.Remaining < most/5 {
			t.Errorf("%s: granted %d: %+v, want the two that fit", limit.Kind.Tag(), granted, v)
		}
	}
}
