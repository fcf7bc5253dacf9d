package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/internal/paper"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// scaling is decisions a second over the number of goroutines, a panel for each workload.
type scaling struct{ panels []scalingPanel }

type scalingPanel struct {
	title      string
	goroutines []int
	lines      []scalingLine
}

type scalingLine struct {
	name   string
	color  color.Color
	values []float64
}

// lineColors are those of the rivals that are drawn.
var lineColors = []struct {
	rival string
	color color.Color
}{
	{rivals.TokenBucket, paper.Dark}, {rivals.SlidingWindow, paper.Middle}, {rivals.RedisRate, paper.Amber}, {rivals.Ulule, paper.Grey},
	{"rueidis, the same script", color.NRGBA{0x2f, 0x8f, 0x5b, 0xff}},
}

func (b *bench) scaling() (s scaling) {
	for _, w := range []workload{hot, uniform} {
		panel := scalingPanel{title: w.name, goroutines: w.counts(b.settings)}
		for _, l := range lineColors {
			line := scalingLine{name: l.rival, color: l.color}
			for _, n := range panel.goroutines {
				line.values = append(line.values, b.speed(w.name, l.rival, n).Median)
			}
			if !slices.ContainsFunc(line.values, math.IsNaN) {
				panel.lines = append(panel.lines, line)
			}
		}
		s.panels = append(s.panels, panel)
	}
	return s
}

// The layout below the title.
const (
	linesHeight = 260
	legendStep  = 12
	axisBelow   = 30
	axisLeft    = 40
	panelGap    = 20
)

func drawLines(s scaling) *paper.Paper {
	height := vg.Length(linesHeight)
	p := titled("On Redis, by goroutines", "decisions a second of one process; each panel has its own scale", height)
	if len(s.panels) == 0 {
		return p
	}
	legend := height - 20
	for _, l := range s.panels[0].lines {
		p.Box(l.color, chartWidth-margin-8, legend-1, chartWidth-margin, legend+5)
		p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Ink, Align: text.XRight}, chartWidth-margin-12, legend-1, l.name)
		legend -= legendStep
	}
	top := legend - 4
	each := (vg.Length(chartWidth) - 2*margin - panelGap) / vg.Length(len(s.panels))
	for i, panel := range s.panels {
		left := margin + vg.Length(i)*(each+panelGap) + axisLeft
		drawPanel(p, panel, left, axisBelow, left+each-axisLeft, top-14)
	}
	return p
}

func drawPanel(p *paper.Paper, s scalingPanel, left, bottom, right, top vg.Length) {
	highest := 1.0
	for _, l := range s.lines {
		highest = max(highest, slices.Max(l.values))
	}
	x := func(i int) vg.Length { return left + (right-left)*vg.Length(i)/vg.Length(max(1, len(s.goroutines)-1)) }
	y := func(v float64) vg.Length { return bottom + (top-bottom)*vg.Length(v/highest) }
	small := paper.Style{Size: paper.SmallSize, Color: paper.Grey}
	p.Write(paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: true}, left, top+6, s.title)
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		p.Line(paper.Rule, nil, left, y(share*highest), right, y(share*highest))
		small.Align = text.XRight
		p.Write(small, left-5, y(share*highest)-2.8, harness.Number(share*highest))
	}
	small.Align = text.XCenter
	for i, n := range s.goroutines {
		p.Write(small, x(i), bottom-11, fmt.Sprint(n))
	}
	p.Write(small, (left+right)/2, bottom-22, "goroutines")
	for _, l := range s.lines {
		points := make([]vg.Point, len(l.values))
		for i, v := range l.values {
			points[i] = vg.Point{X: x(i), Y: y(v)}
		}
		p.StrokeLines(draw.LineStyle{Color: l.color, Width: 1.75}, points)
	}
}
