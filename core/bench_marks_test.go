package core_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// BenchmarkMarked measures 256 callers of a handle on Redis, of 10,000 subjects in turn: without any
// mark, beside others' marks, each with limits of its own, each banned, and each refused by a limit,
// whose refusal is remembered.
func BenchmarkMarked(b *testing.B) {
	const n = 10_000
	endless, spent := core.PerMinute(1e9), core.PerDay(1)
	set := func(ops *operate.Operator, subject string, o operate.Override) error {
		table, err := ops.Overrides("reply")
		if err == nil {
			err = table.Set(background, subject, o)
		}
		return err
	}
	for _, bench := range []struct {
		name  string
		limit core.Limit
		mark  func(ops *operate.Operator, subject string) error
	}{
		{"no marks", endless, nil},
		{"marks of others", endless, func(ops *operate.Operator, subject string) error {
			return set(ops, "other "+subject, operate.Override{Blocked: true})
		}},
		{"overrides of others", endless, func(ops *operate.Operator, subject string) error {
			return set(ops, "other "+subject, operate.Override{Limits: []core.Limit{endless}})
		}},
		{"overrides", spent, func(ops *operate.Operator, subject string) error {
			return set(ops, subject, operate.Override{Limits: []core.Limit{endless}})
		}},
		{"banned", endless, func(ops *operate.Operator, subject string) error {
			_, err := ops.Ban(background, "reply", subject, time.Hour)
			return err
		}},
		{"refused", spent, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			limiter := newLimiter(b, core.Options{Redis: redistest.Start(b).Client(b)})
			subjects, counter := subjects(n), limiter.MustCounter("reply", bench.limit)
			ops := operate.New(limiter)
			for _, subject := range subjects {
				if bench.mark != nil {
					if err := bench.mark(ops, subject); err != nil {
						b.Fatal(err)
					}
				}
				for range 2 { // so that no new key is measured, and refusals are remembered
					if _, err := counter.Allow(background, subject); err != nil {
						b.Fatal(err)
					}
				}
			}
			if _, err := ops.ExportMarks(background); err != nil { // so that no changes are left to be read
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetParallelism(128)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.NewPCG(1, rand.Uint64())
				for pb.Next() {
					if d, err := counter.Allow(background, drawn(subjects, random)); err != nil || d.Allowed == (bench.name == "banned" || bench.name == "refused") {
						b.Error(d, err)
					}
				}
			})
		})
	}
}
