package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/promise"
)

// These are for the tests of the packages below core too.
const (
	patient     = limitertest.Patient
	mostPermits = limitertest.MostPermits
)

var (
	newLimiter        = limitertest.New
	onEveryDeployment = limitertest.OnEveryDeployment
	deadRedis         = limitertest.DeadRedis
	wantRuleError     = limitertest.WantRuleError
	eventually        = limitertest.Eventually
	noMax             = limitertest.NoMax
	newGuard          = limitertest.Guard
	attach            = limitertest.Attach
	ban               = limitertest.Ban
	setOverride       = limitertest.SetOverride
	errorOf           = limitertest.ErrorOf
	ruleOf            = limitertest.RuleOf
)

// onBothEngines runs a test in process and on a real Redis that no other test uses.
func onBothEngines(t *testing.T, test func(t *testing.T, options core.Options, source core.Source)) {
	limitertest.OnBothEngines(t, func(t *testing.T, options core.Options) {
		if options.Redis == nil {
			test(t, options, core.FromMemory)
		} else {
			test(t, options, core.FromRedis)
		}
	})
}

// keysBesideMark returns the keys of a server, except that of its mark.
func keysBesideMark(server redis.Cmdable) []string {
	return slices.DeleteFunc(server.Keys(background, "*").Val(), func(key string) bool { return strings.HasSuffix(key, ":{%mark0}:mk1") })
}

var background = context.Background()

// lasting are limits whose counters do not change by themselves while a test runs.
func lasting(n int) map[string]core.Limit {
	limits := map[string]core.Limit{"month": core.PerCalendarMonth(n, "Pacific/Auckland")}
	for _, limit := range promise.Lasting(n) {
		limits[limit.Algorithm.String()] = limit
	}
	return limits
}
