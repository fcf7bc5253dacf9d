package main

import (
	"math"
	"strconv"
	"strings"
)

// results are the tables of RESULTS.md by heading. The charts are drawn from them, so that no
// chart shows a figure that is not on record, and so that all can be redrawn without measuring.
type results map[string][]row

// row is a line of a table by column. Of columns with the same name it has the first.
type row map[string]string

func parseResults(text string) results {
	r := make(results)
	var heading string
	var columns []string
	for line := range strings.Lines(text) {
		title, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading:
			heading, columns = strings.TrimSpace(title), nil
		case !strings.HasPrefix(line, "| "): // prose, or the line below a table's head
		case columns == nil:
			columns = cells(line)
		default:
			r[heading] = append(r[heading], rowOf(columns, cells(line)))
		}
	}
	return r
}

func cells(line string) []string {
	parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

func rowOf(columns, cells []string) row {
	r := make(row, len(columns))
	for i, column := range columns {
		if _, found := r[column]; !found && i < len(cells) {
			r[column] = cells[i]
		}
	}
	return r
}

// figure returns a cell without its spread: "869k" of "869k (856k..881k)".
func figure(cell string) string {
	number, _, _ := strings.Cut(cell, " ")
	return number
}

// value returns the number that harness.Number wrote, or not a number.
func value(figure string) float64 {
	unit := 1.0
	for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6} {
		if number, found := strings.CutSuffix(figure, suffix); found {
			figure, unit = number, factor
		}
	}
	number, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		return math.NaN()
	}
	return number * unit
}

// onRedis returns the rows of a workload for so many goroutines.
func (r results) onRedis(workload, goroutines string) (rows []row) {
	for _, row := range r[onRedisHeading+workload] {
		if row["goroutines"] == goroutines {
			rows = append(rows, row)
		}
	}
	return rows
}
