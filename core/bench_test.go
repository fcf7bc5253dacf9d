package core_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// BenchmarkAllow measures a direct call in this process, for different numbers of subjects. "core
// alone" is the cost of the core without the store.
func BenchmarkAllow(b *testing.B) {
	for name, n := range someSubjects {
		for prefix, stub := range map[string]bool{"": false, "core alone/": true} {
			b.Run(prefix+name, func(b *testing.B) {
				limiter := newLimiter(b, core.Options{})
				if stub {
					core.UseAnswers(limiter, algorithm.Verdict{Remaining: 1e9}) // not near the limit
				}
				subjects, counter := subjects(n), limiter.MustCounter("reply", core.PerSecond(1e9).Bucket(0))
				allow := func(subject string) {
					if d, err := counter.Allow(background, subject); err != nil || !d.Allowed {
						b.Error(d, err)
					}
				}
				for _, subject := range subjects { // so that no new key is measured
					allow(subject)
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					random := rand.NewPCG(1, rand.Uint64())
					for pb.Next() {
						allow(drawn(subjects, random))
					}
				})
			})
		}
	}
}

var someSubjects = map[string]int{"hot": 1, "100k": 100_000}

func subjects(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "user:" + strconv.Itoa(i)
	}
	return all
}

func drawn(subjects []string, random *rand.PCG) string {
	return subjects[random.Uint64()%uint64(len(subjects))]
}

// BenchmarkCheck measures the check that a middleware makes for each call, for different rules.
//
// To compare two commits, run binaries of both by turns, and link each several times: go test -c
// -ldflags=-randlayout=1, then 2, and so on. Where the linker puts a function changes the cycles by
// up to a fifth. Run each row in a process of its own, because what earlier rows leave behind makes
// the garbage collector dearer: "core alone" takes 385 ns after the others, and 330 by itself.
func BenchmarkCheck(b *testing.B) {
	plain := core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)}
	also, unnamed, refusing := plain, plain, plain
	also.Also = []core.Limit{core.PerMinute(1e9)}
	unnamed.Name = ""
	refusing.Limit = core.PerDay(1)
	for _, bench := range []struct {
		name    string
		rule    core.Rule
		options core.Options
		stub    bool
	}{
		{"named", plain, core.Options{}, false},
		{"following a set", plain, core.Options{}, false},
		{"no headers", plain, core.Options{Headers: core.NoHeaders}, false},
		{"unnamed", unnamed, core.Options{}, false},
		{"two limits", also, core.Options{}, false},
		{"refused", refusing, core.Options{}, false},
		{"refused, with a reference", refusing, keyed(1), false},
		{"core alone", plain, core.Options{}, true},
		{"core alone, no headers", plain, core.Options{Headers: core.NoHeaders}, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			limiter := newLimiter(b, bench.options)
			if bench.stub {
				core.UseAnswers(limiter, algorithm.Verdict{Remaining: 1e9}) // not near the limit
			}
			guard := newGuard(b, limiter, bench.rule)
			if bench.name == "following a set" {
				guard = newRuleSet(b, limiter, bench.rule).MustGuard("api")
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				v := newView("GET", "/reply")
				for pb.Next() {
					clear(v.Response)
					guard.Check(v)
				}
			})
		})
	}
}
