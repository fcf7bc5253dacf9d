package faults_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A faulty network is found, and delays the examination by no more than the time that each command has.
func TestDoctorOfFaultyNetworks(t *testing.T) {
	for _, x := range networkFaults {
		t.Run(x.fault, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			w := newWire(t, server)
			s := limited(t, server, core.Options{Timeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)},
				w.over, func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1 })
			w.inject(x.toxics...)
			found, err := operate.New(s.limiter).Doctor(t.Context())
			if err != nil || !slices.ContainsFunc(found, func(f operate.Finding) bool {
				return slices.Contains([]string{"connection", "latency", "decisions"}, f.Code) && f.Level != "ok" && f.Do != ""
			}) {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
