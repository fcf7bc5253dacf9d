package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// results are the figures of a run. results.tsv holds them, and RESULTS.md and the charts are drawn
// from them.
type results struct {
	about   []string // the command, the machine, the versions
	figures []entry
}

// entry is a figure of a cell, over the rounds of the run.
type entry struct {
	cell
	measure string
	harness.Spread
}

// add adds a figure, unless it was not measured.
func (r *results) add(c cell, measure string, s harness.Spread) {
	if !math.IsNaN(s.Median) && !math.IsInf(s.Median, 0) {
		r.figures = append(r.figures, entry{c, measure, s})
	}
}

// of returns a figure, or a spread of NaN if it was not measured.
func (r *results) of(c cell, measure string) harness.Spread {
	i := slices.IndexFunc(r.figures, func(f entry) bool { return f.cell == c && f.measure == measure })
	if i < 0 {
		return harness.SpreadOf(nil)
	}
	return r.figures[i].Spread
}

// columns are the names of the columns of results.tsv.
const columns = "part\tgoroutines\tname\tfigure\tmedian\tlow\thigh"

// String returns the text of results.tsv.
func (r *results) String() string {
	var text strings.Builder
	for _, line := range r.about {
		text.WriteString("# " + line + "\n")
	}
	text.WriteString(columns + "\n")
	for _, f := range r.figures {
		goroutines := ""
		if f.goroutines > 0 {
			goroutines = strconv.Itoa(f.goroutines)
		}
		row := []string{f.workload, goroutines, f.rival, f.measure, plain(f.Median), plain(f.Low), plain(f.High)}
		text.WriteString(strings.Join(row, "\t") + "\n")
	}
	return text.String()
}

// plain formats a number with four significant digits and without an exponent.
func plain(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // it is a number
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// readResults reads the text of results.tsv.
func readResults(text string) (*results, error) {
	r := &results{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if about, found := strings.CutPrefix(line, "# "); found {
			r.about = append(r.about, about)
		} else if line != columns {
			f, err := readFigure(strings.Split(line, "\t"))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			r.figures = append(r.figures, f)
		}
	}
	return r, nil
}

func readFigure(row []string) (f entry, err error) {
	if len(row) != 7 {
		return f, fmt.Errorf("%d columns, want 7", len(row))
	}
	f.workload, f.rival, f.measure = row[0], row[2], row[3]
	if row[1] != "" {
		if f.goroutines, err = strconv.Atoi(row[1]); err != nil {
			return f, err
		}
	}
	for i, to := range []*float64{&f.Median, &f.Low, &f.High} {
		if *to, err = strconv.ParseFloat(row[4+i], 64); err != nil {
			return f, err
		}
	}
	return f, nil
}
