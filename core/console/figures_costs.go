package console

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// costs is a core.CostStats, with the names of the API.
type costs struct {
	Rule             string `json:"rule"`
	Opened           uint64 `json:"bills_opened"`
	Estimated        uint64 `json:"estimated_permits"`
	Settled          uint64 `json:"bills_settled"`
	SettledEstimates uint64 `json:"settled_estimated_permits"`
	Used             uint64 `json:"used_permits"`
	Unknown          uint64 `json:"bills_unknown"`
	DebtExceeded     uint64 `json:"debt_exceeded_permits"`
}

func costsOf(stats core.Stats) (all []costs) {
	for _, s := range stats.Costs[:min(len(stats.Costs), maxFigures)] {
		of := costs(s)
		of.Rule = show(s.Rule)
		all = append(all, of)
	}
	return all
}

// outgoing holds the counts of a rule for calls that go out.
type outgoing struct {
	Rule    string  `json:"rule"`
	Waiting int     `json:"waiting"`
	Sent    uint64  `json:"sent"`
	GaveUp  uint64  `json:"gave_up"`
	Refused uint64  `json:"refused_by_server"`
	Pauses  uint64  `json:"pauses"`
	Waited  uint64  `json:"waited"`
	Seconds float64 `json:"waited_seconds"` // in all
}

func outgoingOf(stats core.Stats) (all []outgoing) {
	for _, s := range stats.Outgoing[:min(len(stats.Outgoing), maxFigures)] {
		all = append(all, outgoing{
			show(s.Rule), s.Waiting, s.Sent, s.GaveUp, s.Refused, s.Pauses, s.Waited, s.WaitTime.Seconds(),
		})
	}
	return all
}

// Mean returns how long the calls that waited did so on average, in words.
func (o outgoing) Mean() string {
	if o.Waited == 0 {
		return ""
	}
	return span(time.Duration(o.Seconds / float64(o.Waited) * float64(time.Second)))
}
