package replay

import (
	"maps"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// keepSlots returns a rule whose slots are never lost. In a service, calls renew their slots by the
// machine's clock, and lose them only if the process dies.
func keepSlots(r core.Rule) core.Rule {
	r.Limit = keptSlot(r.Limit)
	r.Also, r.Plans = slices.Clone(r.Also), maps.Clone(r.Plans)
	for i := range r.Also {
		r.Also[i] = keptSlot(r.Also[i])
	}
	for plan := range r.Plans {
		r.Plans[plan] = keptSlot(r.Plans[plan])
	}
	if limitFor := r.LimitFor; limitFor != nil {
		r.LimitFor = func(q core.Request) (core.Limit, error) {
			limit, err := limitFor(q)
			return keptSlot(limit), err
		}
	}
	return r
}

// properties returns what is always true of a limit's algorithm.
func properties(l core.Limit) *algorithm.Properties { return algorithm.Kind(l.Algorithm).OfLimit() }

// keptSlot returns a limit whose slots are lost after the longest time that there is.
func keptSlot(l core.Limit) core.Limit {
	if properties(l).Slots {
		l.Window = 366 * 24 * time.Hour
	}
	return l
}
