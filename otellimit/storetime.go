package otellimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/accesslimit/accesslimit/core"
)

// StoreTime shows how long calls wait for Redis, as the histogram accesslimit.store.duration. It is
// a metric.Producer, because OpenTelemetry has no instrument that observes a histogram. Pass it to
// the reader with metric.WithProducer, and then to Observe. Its temporality is always cumulative.
// The zero StoreTime is ready for use, and must not be copied. It is safe for concurrent use.
type StoreTime struct {
	mu       sync.Mutex
	limiters []*timed
}

type timed struct {
	limiter *core.Limiter
	name    attribute.KeyValue
	since   time.Time
}

// add adds a limiter to the shown ones until remove is called.
func (s *StoreTime) add(limiter *core.Limiter, name attribute.KeyValue) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &timed{limiter, name, time.Now()}
	s.limiters = append(s.limiters, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.limiters = slices.DeleteFunc(s.limiters, func(t *timed) bool { return t == added })
	}
}

// Produce implements metric.Producer.
func (s *StoreTime) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	s.mu.Lock()
	limiters := slices.Clone(s.limiters)
	s.mu.Unlock()
	histogram, now := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}, time.Now()
	for _, t := range limiters {
		if h := t.limiter.Stats().StoreTime; h.Bounds != nil { // nil without Redis
			histogram.DataPoints = append(histogram.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: attribute.NewSet(t.name), StartTime: t.since, Time: now,
				Count: h.Count, Sum: h.Sum, Bounds: h.Bounds, BucketCounts: h.Counts,
			})
		}
	}
	if len(histogram.DataPoints) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: scope},
		Metrics: []metricdata.Metrics{{
			Name: "accesslimit.store.duration", Unit: "s", Description: "Time that calls waited for Redis.", Data: histogram,
		}},
	}}, nil
}
