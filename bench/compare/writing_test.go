package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/bench/harness"
)

var chartNames = []string{"hot", "uniform", "process", "middleware"}

// A run can write all its results even if some things were not measured.
func TestWriting(t *testing.T) {
	r, dir := madeUp().results("7.0"), t.TempDir()
	text := r.text()
	for _, want := range []string{"redis-server 7.0", "## Targets", "## On Redis", notMeasured, "one hot key, to ulule: 2.00 (≥12.0)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not say %q", want)
		}
	}
	if err := r.drawCharts(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hot", "uniform"} {
		if _, err := os.Stat(filepath.Join(dir, name+".svg")); err != nil {
			t.Error(err)
		}
	}
}

// committed returns the figures in the repository.
func committed(t *testing.T) *results {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", figuresFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := readResults(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if r.String() != string(text) {
		t.Errorf("%s is written in another form than it has", figuresFile)
	}
	return r
}

// RESULTS.md and the charts in the repository show the figures of results.tsv, as the present code
// draws them.
func TestPageAndChartsShowTheFigures(t *testing.T) {
	r, dir := committed(t), t.TempDir()
	if err := r.drawCharts(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{pageFile: r.text()}
	for _, name := range chartNames {
		chart := filepath.Join(chartsFolder, name+".svg")
		drawn, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		want[chart] = string(drawn)
	}
	for file, text := range want {
		if shown, err := os.ReadFile(filepath.Join("..", file)); string(shown) != text {
			t.Errorf("%s (%v) does not show %s: run go run ./compare -redraw", file, err, figuresFile)
		}
	}
}

// Figures are read as they were written, to four digits.
func TestReadResults(t *testing.T) {
	r := &results{about: []string{"make bench", "two cores"}}
	r.add(cell{"one hot key", "ours", 256}, rate, harness.Spread{Median: 1_234_567, Low: 0.00012, High: 3})
	r.add(cell{workload: "heap", rival: "a, \"b\" | c"}, heapBytes, single(92.9))
	r.add(cell{workload: "heap", rival: "not measured"}, heapBytes, single(math.NaN()))
	read, err := readResults(r.String())
	if err != nil {
		t.Fatal(err)
	}
	r.figures[0].Median = 1_235_000
	if !slices.Equal(read.about, r.about) || !slices.Equal(read.figures, r.figures) || len(r.figures) != 2 {
		t.Errorf("%+v, want %+v", read, r)
	}
	for _, wrong := range []string{"a\tx\tc\td\t1\t1\t1\n", "a\t1\tc\td\tx\t1\t1\n", "a\tb\n", "\n"} {
		if _, err := readResults(columns + "\n" + wrong); err == nil {
			t.Errorf("%q is no error", wrong)
		}
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
