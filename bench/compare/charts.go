package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/accesslimit/accesslimit/bench/figure"
)

// Words of RESULTS.md by which the charts find their figures.
const (
	onRedisHeading    = "On Redis: "
	inProcessHeading  = "In the process"
	middlewareHeading = "Middlewares, counting in the process"
)

// drawCharts draws the charts from the tables of RESULTS.md, so that no chart shows a figure that is
// not on record, and all can be drawn again without measuring.
func drawCharts(dir, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	perSecond := fmt.Sprintf("decisions a second, %d goroutines in one process", crowd)
	for _, chart := range []struct {
		file, title, subtitle, heading string
		bar                            func(row) figure.Bar
	}{
		{"hot", "On Redis, one hot key", perSecond, onRedisHeading + hotKey, redisBar},
		{"uniform", "On Redis, 100k keys", perSecond, onRedisHeading + uniformKeys, redisBar},
		{"process", "In the process, 100k keys", "ns between decisions, all cores calling; less is better", inProcessHeading, processBar},
		{"middleware", "What a middleware adds to its handler", "ns, all cores calling, counted in the process; less is better", middlewareHeading, middlewareBar},
	} {
		var bars []figure.Bar
		for _, row := range tableBelow(chart.heading, text) {
			if bar := chart.bar(row); !math.IsNaN(bar.Value) {
				bars = append(bars, bar)
			}
		}
		if len(bars) == 0 {
			continue // it was not measured
		}
		if err := figure.Bars(filepath.Join(dir, chart.file+".svg"), chart.title, chart.subtitle, bars); err != nil {
			return err
		}
	}
	return nil
}

func redisBar(r row) figure.Bar {
	if r["goroutines"] != fmt.Sprint(crowd) {
		return figure.Bar{Value: math.NaN()}
	}
	return newBar(r["limiter"], r["decisions/s"], "")
}

func processBar(r row) figure.Bar { return newBar(r["limiter"], r["ns, 100k keys"], "") }

func middlewareBar(r row) figure.Bar {
	allocs := fmt.Sprintf(", %.0f allocations", value(r["allocs over it"]))
	return newBar(r["framework"]+": "+r["limit"], r["ns over the bare handler"], allocs)
}

// newBar returns a bar for a cell of a table, whose figure may have a spread behind it.
func newBar(name, cell, unit string) figure.Bar {
	number, _, _ := strings.Cut(cell, " ")
	return figure.Bar{Name: name, Label: number + unit, Value: value(number), Ours: strings.Contains(name, "accesslimit")}
}
