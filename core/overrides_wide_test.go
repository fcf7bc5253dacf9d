package core_test

import (
	"math"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// An int of a process on 32 bits cannot hold all numbers that others store. It then shows the
// largest int, and still counts by the number that is stored.
func TestOverridesAboveAnInt(t *testing.T) {
	const stored = int64(1_000_000_000_000)
	most := int(min(stored, math.MaxInt))
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for _, own := range []core.Limit{core.PerHour(2), core.PerHour(2).Bucket(2)} {
			var seen decisions
			options.Identify, options.OnDecision = whoSays, seen.note
			limiter := newLimiter(t, options)
			rule := byUser("api of " + own.Algorithm.String())
			rule.Limit = own
			guard := newGuard(t, limiter, rule)
			operator{t, limiter, rule.Name, own}.put("user:a", core.StoredOverride(own, stored, stored, false, false, time.Time{}))
			wantServed(t, guard, by("a"), ok, 200, 200, 200)
			if d := seen.last(t, 3); d.Limit.Max != most || d.Remaining < int(min(stored-3, math.MaxInt)) {
				t.Errorf("%+v, want a Max of %d", d, most)
			}
			overrides, err := operate.New(limiter).Overrides(rule.Name)
			if err != nil {
				t.Fatal(err)
			}
			if o, ok, err := overrides.Get(background, "user:a"); err != nil || !ok || o.Max != most || o.Ignored != "" {
				t.Errorf("%+v, %v, %v, want a Max of %d", o, ok, err, most)
			}
		}
	})
}
