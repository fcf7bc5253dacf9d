// Command tables compares ways to keep counters in a process: the limiter's own table, the cache
// library otter v2, and a Go map behind a mutex. Each has a token bucket for each key and, where it
// can be bounded, room for the same number of keys.
//
//	go run ./tables
//
// The limiter does more than the others: a call of it is the whole [core.Counter.Allow], which
// forms the key, checks what it is given and makes a Decision. The others look up the subject as it
// comes, and say yes or no. The figures are medians of interleaved rounds.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	maxKeys = 250_000
	rounds  = 3
	plenty  = 1_000_000_000 // permits a second, which nobody uses up
)

// measurement is one or more columns: their names, and the function that measures them.
type measurement struct {
	columns []string
	run     func(contender) []float64
}

var measurements = []measurement{
	{[]string{"hot key, ns"}, func(c contender) []float64 { return []float64{among(c, 1)} }},
	{[]string{"100k keys, ns"}, func(c contender) []float64 { return []float64{among(c, 100_000)} }},
	{[]string{"new keys, ns"}, func(c contender) []float64 { return []float64{flood(c)} }},
	{[]string{"bytes a key"}, func(c contender) []float64 { return []float64{bytesPerKey(c)} }},
	{[]string{"p99 in expiry, ns", "longest, µs"}, whileExpiring},
}

func main() {
	figures := map[string][]float64{}
	for range rounds {
		for _, m := range measurements {
			for _, c := range contenders {
				for i, figure := range m.run(c) {
					at := c.name + m.columns[i]
					figures[at] = append(figures[at], figure)
				}
			}
		}
	}
	if err := show(figures); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(figures map[string][]float64) error {
	var columns []string
	for _, m := range measurements {
		columns = append(columns, m.columns...)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\t%s\t\n", strings.Join(columns, "\t"))
	for _, c := range contenders {
		fmt.Fprint(table, c.name)
		for _, column := range columns {
			fmt.Fprintf(table, "\t%.0f", median(figures[c.name+column]))
		}
		fmt.Fprintln(table, "\t")
	}
	return table.Flush()
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
