package setups_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	patient = limitertest.Patient

	rightsPage = "core/REDIS.md" // which lists the rights of a user
	auditKey   = "accesslimit:{%audit}:as1"
	markKey    = "accesslimit:{%mark0}:mk1" // of a server that is not one of a cluster
)

var (
	background = context.Background()
	newLimiter = limitertest.New
	isRefused  = limitertest.IsRefused
	eventually = limitertest.Eventually
)

// errorOf returns the error of a call that also reports whether it changed anything.
func errorOf(_ bool, err error) error { return err }

// slotsOf returns slots of a limit with any window.
func slotsOf(limiter *core.Limiter, name string, limit core.Limit) core.Slots {
	return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window)
}
