package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// This many decisions about this many subjects by this many callers at once show how many decisions
// a second to expect. If they are slow, the measurement ends after longest.
const (
	decisions = 4096
	subjects  = 32
	callers   = 64
	longest   = 2 * time.Second
)

// slow is the trip from which on every call notices Redis, and crowded is how long a call waits beside
// those of the other callers if the network or Redis has no room for them.
const (
	slow    = 10 * time.Millisecond
	crowded = 100 * time.Millisecond
)

// ownKeys matches the keys of this library: a subject in braces, and behind the name a tag of two
// letters and a version.
func ownKeys(prefix string) *regexp.Regexp {
	return regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `:\{[^{}]+\}:(.*:)?[a-z]{2}[0-9]+(:.*)?$`)
}

// speed measures how long a call waits, and how many calls a second are decided.
func (e *exam) speed(ctx context.Context) {
	for _, s := range e.servers {
		half, last := s.trips[len(s.trips)/2], s.trips[len(s.trips)-1]
		says := fmt.Sprintf("a trip takes %v, and of %d the slowest took %v", round(half), len(s.trips), round(last))
		if half > slow {
			e.add(Warning, "latency", s, says+": each call waits that long", "run Redis nearer to the services, and look for slow commands (SLOWLOG GET)")
			continue
		}
		e.add(OK, "latency", s, says, "")
	}
	if slices.ContainsFunc(e.servers, (*server).isNearlyFull) {
		e.add(Note, "decisions", nil, "no call was decided, because memory is short, and a counter could evict others", "")
		return
	}
	defer e.forget(ctx)
	began := time.Now()
	done, failed := e.decide(ctx, began)
	took := time.Since(began)
	if failed != nil {
		e.add(Problem, "decisions", nil, fmt.Sprintf("a call was not decided: %v", failed), "see the findings about connection and rights")
		return
	}
	says := fmt.Sprintf("this process gets about %d decisions a second, with %d callers at once and %d subjects", int(float64(done)/took.Seconds()), callers, subjects)
	if wait := callers * took / time.Duration(max(done, 1)); wait > crowded {
		e.add(Warning, "decisions", nil, fmt.Sprintf("%s: a call waits %v", says, round(wait)), "look at the bandwidth to Redis, at its CPU, and for slow commands (SLOWLOG GET)")
		return
	}
	e.add(OK, "decisions", nil, says, "")
}

// decide decides calls on many subjects, until one fails, or it has taken long. It returns how many.
func (e *exam) decide(ctx context.Context, began time.Time) (done int64, err error) {
	var all sync.WaitGroup
	var next, decided atomic.Int64
	var failed atomic.Pointer[error]
	fail := func(err error) { failed.Store(&err) }
	for range callers {
		all.Go(panics.Guard(func() {
			for n := next.Add(1); n <= decisions && failed.Load() == nil && time.Since(began) < longest; n = next.Add(1) {
				if err := e.Decide(ctx, subject(n%subjects)); err != nil {
					fail(err)
					return
				}
				decided.Add(1)
			}
		}, fail))
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return decided.Load(), nil
}

func subject(n int64) string { return fmt.Sprint("doctor:", n) }

// forget deletes the counters of the calls that were decided. If that fails, they expire.
func (e *exam) forget(ctx context.Context) {
	for n := range int64(subjects) {
		if _, err := ask(ctx, e, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Forget(ctx, subject(n)) }); err != nil {
			return
		}
	}
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
