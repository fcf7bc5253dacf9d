package promise

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// RefusedChangesNothing: refused calls, however many and at whatever cost, never make their caller
// wait longer, and change no byte in any server. Neither do peeks. Under a rule with Ban, a refusal
// counts a strike and changes nothing else.
func RefusedChangesNothing(t *testing.T, e Engine) {
	lab := e.newLab(t)
	lab.eachLimit(t, "hammering", func(c counter, _ facts) {
		calm := c.of("calm")
		for _, each := range []counter{c, calm} {
			each.useUp()
		}
		told := c.mustRefuse(1).RetryAfter
		passes := time.Now().Add(told)
		calm.sameAs(c, "after one refusal")
		before := lab.keys(c.t, c.prefix)
		for i := range 20 {
			time.Sleep(told / 24)
			c.limiter = c.another() // it does not know about the refusals, so it asks the servers
			c.mustRefuse(1 + i%min(3, atOnce(c.limit)))
			c.mustRefuse(atOnce(c.limit))
			c.peek()
		}
		if after := lab.keys(c.t, c.prefix); !maps.Equal(before, after) {
			c.t.Errorf("refused calls changed what the servers hold:\n%v, and before them\n%v", after, before)
		}
		c.sameAs(calm, "after many refusals")
		time.Sleep(time.Until(passes))
		c.mustTake(1)
	})
	t.Run("strikes", lab.strikesAlone)
	t.Run("hammering beside others", e.hammeredBesideOthers)
}

// strikesAlone checks that refusals under a rule with Ban write a key for their strikes, which dies,
// and nothing else.
func (l *lab) strikesAlone(t *testing.T) {
	l.bubble(t, func(t *testing.T, options core.Options) {
		rule := ruleOf("name", core.PerDay(5))
		rule.Ban = core.Ban{After: 2, For: time.Hour}
		c := counter{t: t, limiter: newLimiter(t, options), prefix: options.Prefix, name: "name", subject: subjectOf("refused"), limit: rule.Limit}
		c.useUp()
		before, seen, another := l.keys(t, c.prefix), c.peek(), l.others(t, options, c.limiter)
		for range 5 {
			if got := status(another().MustGuard(rule).Check(callBy(context.Background(), "refused"))); got != http.StatusTooManyRequests {
				t.Errorf("status %d, want %d", got, http.StatusTooManyRequests)
			}
		}
		synctest.Wait()
		strikes := l.keys(t, c.prefix)
		for key, state := range before {
			if strikes[key] != state {
				t.Errorf("refusals changed %s", key)
			}
			delete(strikes, key)
		}
		if err := sameDecision(c.peek(), seen); err != nil || l.client != nil && len(strikes) != 1 {
			t.Errorf("refusals wrote %v, and changed their counter: %v", strikes, err)
		}
		wantDead(t, strikes, time.Now().Add(rule.Limit.Window+rule.Ban.For))
	})
}

// hammeredBesideOthers makes many calls by callers who have used up their own limit. They must not
// take permits of a limit that they share with others, not even for a moment, although it may be
// counted on another server. So all others pass.
func (e Engine) hammeredBesideOthers(t *testing.T) {
	t.Run("in the process that refused them before", func(t *testing.T) { e.hammered(t, false) })
	t.Run("in a process that has to find out", func(t *testing.T) { e.hammered(t, true) })
}

func (e Engine) hammered(t *testing.T, unknown bool) {
	const hammering, innocent = 4, 60
	own := core.Rule{Name: "own", Limit: core.PerHour(1), Key: byCaller}
	// A process may charge one call of a caller before it learns of the refusal.
	shared := core.Rule{Name: "shared", Limit: core.PerHour(hammering + innocent + hammering), Key: core.Global}
	all := e.limiters(t, 2)
	guard := all[0].MustGuard(own, shared)
	call := func(format string, i int) int {
		return status(guard.Check(callBy(context.Background(), fmt.Sprintf(format, i))))
	}
	for i := range hammering {
		if got := call("hammering %d", i); got != http.StatusOK {
			t.Fatalf("status %d, want %d", got, http.StatusOK)
		}
	}
	if unknown && !e.inProcess() {
		guard = all[1].MustGuard(own, shared)
	}
	var over atomic.Bool
	var crowd sync.WaitGroup
	for i := range 16 * hammering {
		crowd.Go(func() {
			for !over.Load() {
				if got := call("hammering %d", i%hammering); got != http.StatusTooManyRequests {
					t.Errorf("a caller without permits got status %d", got)
				}
				// Callers that are refused in this process would take all processor time.
				runtime.Gosched()
			}
		})
	}
	refused := 0
	for i := range innocent {
		if call("innocent %d", i) != http.StatusOK {
			refused++
		}
	}
	over.Store(true)
	crowd.Wait()
	if refused > 0 {
		t.Errorf("%d of %d others were refused", refused, innocent)
	}
}

// useUp takes everything: half of it now and half a little later, so that it does not come back all
// at once. If permits would come back in that time, it takes everything now.
func (c counter) useUp() {
	c.t.Helper()
	half := atOnce(c.limit) / 2
	c.mustTake(half)
	c.mustTake(atOnce(c.limit) - half)
}
