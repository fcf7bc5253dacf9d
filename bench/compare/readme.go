package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The text between these marks in bench/README.md is written here, so that no figure there is older
// than RESULTS.md.
const (
	beginMark = "<!-- make bench writes this table -->"
	endMark   = "<!-- as far as here -->"
)

var errNoMarks = errors.New("the README has no place for results: " + beginMark + " and " + endMark)

func (b *bench) updateReadme(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := between(string(text), b.readmeTable())
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

// between returns text with the table between the marks.
func between(text, table string) (string, error) {
	before, rest, found := strings.Cut(text, beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !found || !ended {
		return "", errNoMarks
	}
	return before + beginMark + "\n\n" + table + "\n" + endMark + after, nil
}

// readmeTable returns the most important rows.
func (b *bench) readmeTable() string {
	table := harness.NewTable(fmt.Sprintf("`%s`, %d cores for client and server", b.command(), runtime.NumCPU()), "accesslimit", "redis_rate", "ulule", "others")
	on := func(label, workload string) {
		speed := func(rival string) string { return harness.Number(b.speed(workload, rival, crowd).Median) }
		table.Row(label, speed(rivals.TokenBucket)+" ("+speed(rivals.SlidingWindow)+")", speed(rivals.RedisRate), speed(rivals.Ulule),
			"rueidis "+speed(rivals.Rueidis)+", throttled "+speed("throttled"))
	}
	on("decisions/s on Redis, one hot key, 256 goroutines", hotKey)
	on("the same, 100k keys", uniformKeys)
	on("the same, 100k keys, zipf", zipfKeys)
	on("the same, a key that is used up", refusedKey)
	p99 := func(rival string) string {
		return harness.Number(b.of(cell{hotKey, rival, crowd, 1}, percentile(99)).Median/1000) + " ms"
	}
	table.Row("p99 on Redis, one hot key, 256 goroutines", p99(rivals.TokenBucket)+" ("+p99(rivals.SlidingWindow)+")", p99(rivals.RedisRate), p99(rivals.Ulule), "")
	cost := func(rival string) string { return harness.Number(b.costOf(rival, allowedCall).Median) + " µs" }
	table.Row("time of the Redis server for a decision", cost(rivals.TokenBucket)+" ("+cost(rivals.SlidingWindow)+")", cost(rivals.RedisRate), cost(rivals.Ulule), "")
	many := func(rival string) string {
		return harness.Number(b.localOf(b.allKeys(rival), nanosOf).Median) + " ns"
	}
	table.Row("a decision in the process, 100k keys", many(rivals.TokenBucket)+" ("+many(rivals.SlidingWindow)+")", "", many(rivals.Ulule),
		"go-limiter "+many(rivals.GoLimiter)+", x/time/rate in a map "+many("x/time/rate in a map"))
	gin := func(name string) string {
		nanos := harness.SpreadOf(b.added("gin", name, nanosOf)).Median
		if math.IsNaN(nanos) {
			return "-"
		}
		return fmt.Sprintf("%s ns, %.0f allocations", harness.Number(nanos), harness.SpreadOf(b.added("gin", name, allocsOf)).Median)
	}
	table.Row("what a middleware adds to gin", gin(rivals.Ours), "", gin(rivals.Ulule), "")
	return table.String()
}
