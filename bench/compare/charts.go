package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/internal/paper"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// chart is a picture of one comparison.
type chart struct {
	file  string // without .svg
	title string
	about string
	bars  []bar
}

func (b *bench) charts() []chart {
	process, crowded := "ns between decisions, all cores calling; less is better", fmt.Sprintf("decisions a second, %d goroutines in one process", crowd)
	return []chart{
		{"hot", "On Redis, one hot key", crowded, b.redisBars(hotKey)},
		{"uniform", "On Redis, 100k keys", crowded, b.redisBars(uniformKeys)},
		{"zipf", "On Redis, 100k keys of which a few get most calls", crowded, b.redisBars(zipfKeys)},
		{"process", "In the process, 100k keys", process, b.processBars()},
		{"middleware", "What a middleware adds to its handler", "ns, all cores calling, counted in the process; less is better", b.middlewareBars()},
	}
}

func (b *bench) redisBars(workload string) (bars []bar) {
	for _, r := range rivals.OnRedis {
		speed := b.speed(workload, r.Name, crowd).Median
		bars = append(bars, bar{r.Name, speed, harness.Number(speed), isOurs(r.Name)})
	}
	if workload != hotKey && len(b.ceiling) > 0 {
		speed := harness.SpreadOf(b.ceiling).Median
		bars = append(bars, bar{"the server alone, TokenBucket's script", speed, harness.Number(speed), false})
	}
	return bars
}

func (b *bench) processBars() (bars []bar) {
	for _, r := range rivals.InThisProcess {
		nanos := b.nanos(cell{workload: keysInProcess(b.manyKeys), rival: r.Name}).Median
		bars = append(bars, bar{r.Name, nanos, harness.Number(nanos), isOurs(r.Name)})
	}
	return bars
}

func (b *bench) middlewareBars() (bars []bar) {
	for _, m := range rivals.Middlewares {
		if m.Name != rivals.None {
			nanos, allocs := b.added(m)
			words := fmt.Sprintf("%s, %.0f allocations", harness.Number(nanos), allocs)
			bars = append(bars, bar{m.Framework + ": " + m.Name, nanos, words, isOurs(m.Name)})
		}
	}
	return bars
}

func isOurs(rival string) bool { return len(rival) >= 11 && rival[:11] == "accesslimit" }

func (b *bench) drawCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range b.charts() {
		if err := save(filepath.Join(dir, c.file+".svg"), drawBars(c)); err != nil {
			return err
		}
	}
	return save(filepath.Join(dir, "goroutines.svg"), drawLines(b.scaling()))
}

func save(path string, p *paper.Paper) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := p.Save(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
