package operate

import (
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// ParseLimits reads limits in their text form, separated by commas, such as 500/m, 10000/24h: see
// [core.ParseLimit]. The error is a *[core.RuleError].
func ParseLimits(text string) (limits []core.Limit, err error) {
	for part := range strings.SplitSeq(text, ",") {
		limit, err := core.ParseLimit(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		limits = append(limits, limit)
	}
	return limits, nil
}
