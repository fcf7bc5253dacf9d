package memstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// others returns limits of the algorithms that are not in limits.
func others() (log, slots, pause algorithm.Limit) {
	return algorithm.Windowed(algorithm.SlidingLog, 10, second), algorithm.Windowed(algorithm.Concurrency, 3, second), algorithm.PauseLimit
}

func charge(key string, limit *algorithm.Limit, mark string) algorithm.Charge {
	return algorithm.Charge{Key: []byte(key), Limit: limit, Cost: 1, Mark: mark}
}

// All operations side by side leave a table that counts what it holds.
func TestOperationsUnderManyCallers(t *testing.T) {
	log, slots, pause := others()
	bucket, ctx := limits(t, 100)["bucket"], context.Background()
	s := New(100, nil)
	defer s.Close()
	together(func(goroutine int) {
		for i := range 100 {
			name := fmt.Sprint(i % 40)
			call := []algorithm.Counter{counter("log "+name, &log), counter("pause "+name, &pause), counter("slots "+name, &slots)}
			call[2].Behind, call[2].Mark = uint16(i%3/2), fmt.Sprint(goroutine)
			turn := counter("bucket "+name, bucket)
			switch goroutine % 8 {
			case 0:
				_ = s.Change(ctx, &algorithm.Change{Kind: algorithm.Pauses, Key: call[1].Key, Pause: &algorithm.Pause{Span: second / 1000}})
			case 1:
				_ = s.Change(ctx, &algorithm.Change{Kind: algorithm.Renews, Charges: []algorithm.Charge{charge("slots "+name, &slots, "other")}})
			case 2:
				_, _ = s.Records(ctx, call[0].Key, &log)
			case 3:
				v := s.reserve(turn, second)
				_ = s.Change(ctx, &algorithm.Change{Charges: []algorithm.Charge{turn.Charged(&v)}})
			case 4:
				_, _ = s.Reset(ctx, call[i%3].Key)
			default:
				verdicts := s.decide(true, call...)
				_ = s.Change(ctx, &algorithm.Change{Charges: []algorithm.Charge{call[0].Charged(&verdicts[0]), call[2].Charged(&verdicts[2])}})
			}
		}
	})
	if said, there := s.size(); said != there || said > 100 {
		t.Errorf("%d keys are said to be there, %d are", said, there)
	}
}
