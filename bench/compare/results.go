package main

import (
	"math"
	"strconv"
	"strings"
)

// row is a line of a table by column. Of columns with the same name it has the first.
type row map[string]string

// tableBelow returns the table below a heading of RESULTS.md.
func tableBelow(heading, text string) (rows []row) {
	_, text, _ = strings.Cut(text, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var columns []string
	for line := range strings.Lines(text) {
		switch {
		case !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| -"): // prose, or the line below a table's head
		case columns == nil:
			columns = cells(line)
		default:
			r := make(row)
			for i, cell := range cells(line) {
				if _, found := r[columns[i]]; !found {
					r[columns[i]] = cell
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func cells(line string) []string {
	parts := strings.Split(strings.Trim(line, "| \n"), "|")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// value returns the number that harness.Number wrote, or NaN.
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
