package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/bench/figure"
	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// chart is a chart of bars.
type chart struct {
	file, title, subtitle string
	bars                  []figure.Bar
}

// drawCharts draws the charts.
func (r *results) drawCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range r.charts() {
		c.bars = slices.DeleteFunc(c.bars, func(b figure.Bar) bool { return math.IsNaN(b.Value) })
		if len(c.bars) == 0 {
			continue // it was not measured
		}
		if err := figure.Bars(filepath.Join(dir, c.file+".svg"), c.title, c.subtitle, c.bars); err != nil {
			return err
		}
	}
	return nil
}

func (r *results) charts() []chart {
	perSecond := fmt.Sprintf("decisions a second, %d goroutines in one process", crowd)
	return []chart{
		{"hot", "On Redis, one hot key", perSecond, r.redisBars(hotKey)},
		{"uniform", "On Redis, 100k keys", perSecond, r.redisBars(uniformKeys)},
		{"process", "In the process, 100k keys", "ns between decisions, all cores calling; less is better", r.processBars()},
		{"middleware", "What a middleware adds to its handler", "ns, all cores calling, counted in the process; less is better", r.middlewareBars()},
	}
}

func (r *results) redisBars(workload string) (bars []figure.Bar) {
	for _, name := range contestantNames() {
		bars = append(bars, newBar(name, "", r.of(cell{workload, name, crowd}, rate)))
	}
	return bars
}

func (r *results) processBars() (bars []figure.Bar) {
	for _, rival := range rivals.InThisProcess {
		bars = append(bars, newBar(rival.Name, "", r.of(cell{workload: allKeys, rival: rival.Name}, elapsed)))
	}
	return bars
}

func (r *results) middlewareBars() (bars []figure.Bar) {
	for _, m := range rivals.Middlewares {
		c := middlewareCell(m.Framework, m.Name)
		unit := fmt.Sprintf(", %.0f allocations", max(0, r.of(c, addedAlloc).Median))
		bars = append(bars, newBar(m.Framework+": "+m.Name, unit, r.of(c, addedTime)))
	}
	return bars
}

func newBar(name, unit string, s harness.Spread) figure.Bar {
	return figure.Bar{Name: name, Label: harness.Number(s.Median) + unit, Value: s.Median, Ours: strings.Contains(name, "accesslimit")}
}
