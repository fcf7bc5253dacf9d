package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
)

// chart is a picture of one comparison.
type chart struct {
	file     string // without .svg
	title    string
	subtitle string
	bars     []bar
}

func (r results) charts() []chart {
	perSecond := fmt.Sprintf("decisions a second, %d goroutines in one process", crowd)
	return []chart{
		{"hot", "On Redis, one hot key", perSecond, r.redisBars(hotKey)},
		{"uniform", "On Redis, 100k keys", perSecond, r.redisBars(uniformKeys)},
		{
			"zipf", "On Redis, 100k keys of which a few get most calls",
			perSecond, r.redisBars(zipfKeys),
		},
		{
			"process", "In the process, 100k keys",
			"ns between decisions, all cores calling; less is better", r.processBars(),
		},
		{
			"middleware", "What a middleware adds to its handler",
			"ns, all cores calling, counted in the process; less is better", r.middlewareBars(),
		},
	}
}

func (r results) redisBars(workload string) (bars []bar) {
	for _, row := range r.onRedis(workload, fmt.Sprint(crowd)) {
		bars = append(bars, newBar(row["limiter"], figure(row["decisions/s"]), ""))
	}
	return bars
}

func (r results) processBars() (bars []bar) {
	for _, row := range r[inProcessHeading] {
		bars = append(bars, newBar(row["limiter"], figure(row["ns, 100k keys"]), ""))
	}
	return bars
}

func (r results) middlewareBars() (bars []bar) {
	for _, row := range r[middlewareHeading] {
		allocs := fmt.Sprintf(", %.0f allocations", value(row["allocs over it"]))
		name := row["framework"] + ": " + row["limit"]
		bars = append(bars, newBar(name, figure(row["ns over the bare handler"]), allocs))
	}
	return bars
}

// drawCharts draws the charts of the text of RESULTS.md.
func drawCharts(dir, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r := parseResults(text)
	for _, c := range r.charts() {
		if err := save(filepath.Join(dir, c.file+".svg"), drawBars(c)); err != nil {
			return err
		}
	}
	return save(filepath.Join(dir, "goroutines.svg"), drawLines(r.scaling()))
}

func save(path string, p *paper.Paper) error {
	var svg strings.Builder
	if err := p.Save(&svg); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(svg.String()), 0o644)
}
