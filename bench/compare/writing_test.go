package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/bench/rivals"
)

var chartNames = []string{"hot", "uniform", "process", "middleware"}

// A run can write all its results even if some things were not measured.
func TestWriting(t *testing.T) {
	b, dir := madeUp(), t.TempDir()
	text := b.text("7.0")
	for _, want := range []string{"redis-server 7.0", "## Targets", "## On Redis: one hot key", "not measured", "0.50x"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not say %q", want)
		}
	}
	if err := drawCharts(dir, text); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hot", "uniform"} {
		if _, err := os.Stat(filepath.Join(dir, name+".svg")); err != nil {
			t.Error(err)
		}
	}
}

// The charts in the repository show the figures of RESULTS.md, as the present code draws them.
func TestChartsShowTheResults(t *testing.T) {
	dir, committed := t.TempDir(), filepath.Join("..", "charts")
	results, err := os.ReadFile(filepath.Join("..", "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := drawCharts(dir, string(results)); err != nil {
		t.Fatal(err)
	}
	for _, name := range chartNames {
		drawn, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if shown, err := os.ReadFile(filepath.Join(committed, name+".svg")); string(shown) != string(drawn) {
			t.Errorf("%s.svg (%v) is not what RESULTS.md says: run go run ./compare -redraw", name, err)
		}
	}
}

func TestTableBelow(t *testing.T) {
	text := madeUp().text("7.0")
	rows := tableBelow(onRedisHeading+uniformKeys, text)
	if last := len(rows) - 1; last < 0 || rows[last]["limiter"] != scriptAlone || rows[0]["limiter"] != rivals.TokenBucket || rows[0]["decisions/s"] != "1500 (1000..2000)" {
		t.Fatalf("the rows of %s: %v", uniformKeys, rows)
	}
	if rows := tableBelow("no such heading", text); rows != nil {
		t.Errorf("rows without a table: %v", rows)
	}
	for number, want := range map[string]float64{"429": 429, "869k": 869_000, "4.82M": 4_820_000, "0.50": 0.5} {
		if got := value(number); got != want {
			t.Errorf("%s is %v, want %v", number, got, want)
		}
	}
	if !math.IsNaN(value("-")) {
		t.Error("a dash is a number")
	}
}

// Both READMEs show charts that exist.
func TestReadmeShowsTheRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range chartNames {
		path := "charts/" + name + ".svg"
		if !strings.Contains(string(text), "("+path+")") {
			t.Errorf("bench/README.md does not show %s", path)
		}
		if _, err := os.Stat(filepath.Join("..", path)); err != nil {
			t.Errorf("%v: run make bench", err)
		}
	}
	if path := "bench/charts/uniform.svg"; !strings.Contains(string(top), path) {
		t.Errorf("the README does not show %s", path)
	}
}
