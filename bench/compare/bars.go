package main

import (
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
)

// bar is one rival in a chart.
type bar struct {
	name  string
	value float64
	words string // behind the bar
	ours  bool
}

// The layout of a chart, in points.
const (
	chartWidth = 600
	margin     = 14
	header     = 44
	names      = 190 // left of the bars
	barHeight  = 11
	barStep    = 16
	wordsWidth = 100 // right of the longest bar
)

// drawBars draws a bar for each rival that was measured, ours dark.
func drawBars(c chart) *paper.Paper {
	bars := slices.DeleteFunc(slices.Clone(c.bars), func(b bar) bool { return math.IsNaN(b.value) })
	height := vg.Length(header + len(bars)*barStep + margin)
	p := titled(c.title, c.about, height)
	longest := 0.0
	for _, b := range bars {
		longest = max(longest, b.value)
	}
	for i, b := range bars {
		bottom := height - header - vg.Length(i+1)*barStep + barStep - barHeight
		length := vg.Length(0)
		if longest > 0 {
			length = vg.Length(max(b.value, 0)/longest) * (chartWidth - names - wordsWidth)
		}
		fill := paper.Light
		if b.ours {
			fill = paper.Dark
		}
		p.Box(fill, names, bottom, names+max(length, 1), bottom+barHeight)
		p.Write(paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: b.ours, Align: text.XRight}, names-6, bottom+2.5, b.name)
		p.Write(paper.Style{Size: paper.TextSize, Color: paper.Grey}, names+length+5, bottom+2.5, b.words)
	}
	return p
}

func titled(title, about string, height vg.Length) *paper.Paper {
	p := paper.New(chartWidth, height)
	p.Write(paper.Style{Size: paper.TitleSize, Color: paper.Ink, Bold: true}, margin, height-20, title)
	p.Write(paper.Style{Size: paper.TextSize, Color: paper.Grey}, margin, height-34, about)
	return p
}
