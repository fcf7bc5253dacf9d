package core_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// BenchmarkAllow measures a direct call in this process, for different numbers of subjects. "core
// alone" is the cost of the core without the store.
func BenchmarkAllow(b *testing.B) {
	for _, bench := range []struct {
		name     string
		subjects int
		stub     bool
	}{{"hot", 1, false}, {"100k", 100_000, false}, {"core alone/hot", 1, true}, {"core alone/100k", 100_000, true}} {
		b.Run(bench.name, func(b *testing.B) {
			limiter := newLimiter(b, core.Options{})
			if bench.stub {
				core.UseAnswers(limiter)
			}
			subjects := make([]string, bench.subjects)
			for i := range subjects {
				subjects[i] = "user:" + strconv.Itoa(i)
			}
			counter := limiter.MustCounter("reply", core.PerSecond(1e9).Bucket(0))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.NewPCG(1, rand.Uint64())
				for pb.Next() {
					subject := subjects[random.Uint64()%uint64(len(subjects))]
					if d, err := counter.Allow(background, subject); err != nil || !d.Allowed {
						b.Error(d, err)
					}
				}
			})
		})
	}
}

// BenchmarkCheck measures the check that a middleware makes for each call, for different rules.
func BenchmarkCheck(b *testing.B) {
	plain := core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)}
	also, unnamed, refusing := plain, plain, plain
	also.Also = []core.Limit{core.PerMinute(1e9)}
	unnamed.Name = ""
	refusing.MaxCount, refusing.Seconds = 1, 24*3600
	for _, bench := range []struct {
		name    string
		rule    core.Rule
		options core.Options
		stub    bool
	}{
		{"named", plain, core.Options{}, false},
		{"no headers", plain, core.Options{Headers: core.NoHeaders}, false},
		{"unnamed", unnamed, core.Options{}, false},
		{"two limits", also, core.Options{}, false},
		{"refused", refusing, core.Options{}, false},
		{"core alone", plain, core.Options{}, true},
		{"core alone, no headers", plain, core.Options{Headers: core.NoHeaders}, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			limiter := newLimiter(b, bench.options)
			if bench.stub {
				core.UseAnswers(limiter)
			}
			guard := newGuard(b, limiter, bench.rule)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				v := newView("GET", "/reply")
				for pb.Next() {
					clear(v.response)
					guard.Check(v)
				}
			})
		})
	}
}
