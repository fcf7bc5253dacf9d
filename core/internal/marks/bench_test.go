package marks_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// BenchmarkFind measures a search of 10,000 subjects in turn, under a rule without marks, and in a
// table of 100,000 marks: none of them, and each of them.
func BenchmarkFind(b *testing.B) {
	begin := time.Now()
	now := func() int64 { return time.Since(begin).Microseconds() }
	set := marks.NewSet(marks.Options{Now: now, SinceEpoch: now, Most: marks.Most, MostBans: marks.MostBans})
	for i := range marks.Most {
		if _, err := set.Act(background, marks.Mark{Rule: "r", Subject: fmt.Sprint("user:", i), Kind: marks.Blocked}, 0); err != nil {
			b.Fatal(err)
		}
	}
	addr := netip.MustParseAddr("203.0.113.7")
	for name, of := range map[string]struct {
		rule, subject string
		marked        bool
	}{"no marks": {"other", "user:", false}, "not found": {"r", "other:", false}, "found": {"r", "user:", true}} {
		b.Run(name, func(b *testing.B) {
			rule := set.Rule(of.rule)
			subjects := make([][]byte, 10_000)
			for i := range subjects {
				subjects[i] = fmt.Append(nil, of.subject, 7*i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if rule.Find(subjects[i%len(subjects)], addr).Empty() == of.marked {
					b.Fatal("wrong")
				}
			}
		})
	}
}

// BenchmarkMemory measures what a table of 100,000 marks takes, in bytes for each.
func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	now := func() int64 { return 1 }
	set := marks.NewSet(marks.Options{Now: now, SinceEpoch: now, Most: marks.Most, MostBans: marks.MostBans})
	for i := range marks.Most {
		m := marks.Mark{Rule: "login", Subject: fmt.Sprint("ip:203.0.113.", i), Kind: marks.Banned, Author: "bob", Note: "ticket"}
		if _, err := set.Act(background, m, hour); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/marks.Most, "B/mark")
	runtime.KeepAlive(set)
}
