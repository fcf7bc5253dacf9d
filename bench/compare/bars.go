package main

import (
	"math"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
)

// bar is one limiter in a chart.
type bar struct {
	name  string
	value float64
	label string // right of the bar
	ours  bool
}

// newBar returns a bar for a figure of RESULTS.md.
func newBar(name, figure, unit string) bar {
	return bar{name, value(figure), figure + unit, strings.Contains(name, "accesslimit")}
}

// The layout of a chart, in points.
const (
	chartWidth = 600
	margin     = 14
	header     = 44
	barHeight  = 11
	barStep    = 16
	labelGap   = 6
)

func (b bar) nameStyle() paper.Style {
	return paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: b.ours}
}

var valueStyle = paper.Style{Size: paper.TextSize, Color: paper.Grey}

// drawBars draws a bar for each limiter that was measured, ours dark. The bars get the width that
// the names and the values leave.
func drawBars(c chart) *paper.Paper {
	bars := slices.DeleteFunc(slices.Clone(c.bars), func(b bar) bool { return math.IsNaN(b.value) })
	var longest, names, values float64
	for _, b := range bars {
		longest = max(longest, b.value)
		names = max(names, b.nameStyle().Width(b.name))
		values = max(values, valueStyle.Width(b.label))
	}
	left := margin + names + labelGap
	widest := chartWidth - margin - values - labelGap - left
	p := titled(c.title, c.subtitle, float64(header+len(bars)*barStep+margin))
	for i, b := range bars {
		top := float64(header + i*barStep)
		length := 1.0
		if longest > 0 {
			length = max(length, widest*b.value/longest)
		}
		fill := paper.Light
		if b.ours {
			fill = paper.Dark
		}
		p.Box(fill, left, top, left+length, top+barHeight)
		p.Write(b.nameStyle(), paper.End, left-labelGap, top+8.5, b.name)
		p.Write(valueStyle, paper.Start, left+length+labelGap, top+8.5, b.label)
	}
	return p
}

func titled(title, subtitle string, height float64) *paper.Paper {
	p := paper.New(chartWidth, height)
	p.Write(paper.Style{Size: paper.TitleSize, Color: paper.Ink, Bold: true}, paper.Start, margin, 20, title)
	p.Write(paper.Style{Size: paper.TextSize, Color: paper.Grey}, paper.Start, margin, 34, subtitle)
	return p
}
