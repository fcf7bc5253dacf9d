package console

import (
	"slices"
	"strconv"
	"strings"
)

// chart is a line chart of the last five minutes, which a template draws as SVG.
type chart struct {
	Allowed, Refused string  // the points of a polyline
	Most             float64 // the top of the scale, in calls per second
	Words            string  // the same in words
}

// The size of the chart, without room for texts.
const chartWidth, chartHeight = 600, 120

func drawChart(allowed, refused []float64) *chart {
	if len(allowed) == 0 {
		return nil
	}
	most := scale(max(slices.Max(allowed), slices.Max(refused)))
	return &chart{
		Allowed: points(allowed, most), Refused: points(refused, most), Most: most,
		Words: "Allowed: " + inWords(allowed) + ". Refused: " + inWords(refused) + ".",
	}
}

// scale returns the next number of the form 1, 2 or 5 times a power of ten.
func scale(most float64) float64 {
	top := 1.0
	for _, step := 0, [...]float64{2, 2.5, 2}; ; {
		for _, times := range step {
			if top >= most {
				return top
			}
			top *= times
		}
	}
}

// points returns the points of a line that ends at the right.
func points(values []float64, most float64) string {
	var b strings.Builder
	step := float64(chartWidth) / (maxSamples - 2)
	for i, value := range values {
		x := chartWidth - float64(len(values)-1-i)*step
		y := chartHeight * (1 - value/most)
		b.WriteString(strconv.FormatFloat(x, 'f', 1, 64) + "," + strconv.FormatFloat(y, 'f', 1, 64) + " ")
	}
	return strings.TrimSuffix(b.String(), " ")
}

func inWords(values []float64) string {
	return "between " + rate(slices.Min(values)) + " and " + rate(slices.Max(values)) + ", now " + rate(values[len(values)-1])
}
