package faults_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const poolFault = "a pool of one connection, under 64 callers"

// One connection is enough for many callers, because their calls are sent together.
func TestPoolOfOneConnection(t *testing.T) {
	server := redistest.Start(t)
	s := limited(t, server, core.Options{Timeout: patience}, func(o *redis.Options) { o.PoolSize = 1 })
	ask, limit := s.direct("direct", core.PerDay(1000)), 100
	together(64, func(i int) {
		for n := range limit {
			subject := "hot"
			if i%2 == 0 {
				subject = fmt.Sprint(i, ".", n)
			}
			if d, err := ask(context.Background(), subject); !decided(d, err) && d.Reason != core.LimitExceeded {
				t.Errorf("%+v, %v; want it decided", d, err)
			}
		}
	})
	if used := charged(t, server, "direct", core.PerDay(1000), []string{"hot"})[0]; used != 1000 {
		t.Errorf("%d of 1,000 are charged by 3,200 calls", used)
	}
	report(t, poolFault, "%d calls, all decided", 64*limit)
}
