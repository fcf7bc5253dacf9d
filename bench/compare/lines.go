package main

import (
	"math"
	"slices"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/internal/paper"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// scalingPanel is decisions a second over the number of goroutines, for one workload.
type scalingPanel struct {
	title      string
	goroutines []string
	lines      []scalingLine
}

type scalingLine struct {
	name   string
	color  string
	values []float64
}

// drawn are the limiters in the chart, with their colors.
var drawn = []struct{ rival, color string }{
	{rivals.TokenBucket, paper.Dark},
	{rivals.SlidingWindow, paper.Medium},
	{rivals.RedisRate, paper.Amber},
	{rivals.Ulule, paper.Grey},
	{rivals.Rueidis, paper.Green},
}

func (r results) scaling() (panels []scalingPanel) {
	for _, w := range []workload{hot, uniform} {
		panel := scalingPanel{title: w.name}
		values := make(map[string][]float64)
		for _, row := range r[onRedisHeading+w.name] {
			if n := row["goroutines"]; !slices.Contains(panel.goroutines, n) {
				panel.goroutines = append(panel.goroutines, n)
			}
			rival := row["limiter"]
			values[rival] = append(values[rival], value(figure(row["decisions/s"])))
		}
		for _, d := range drawn {
			v := values[d.rival]
			if len(v) > 0 && len(v) == len(panel.goroutines) && !slices.ContainsFunc(v, math.IsNaN) {
				panel.lines = append(panel.lines, scalingLine{d.rival, d.color, v})
			}
		}
		panels = append(panels, panel)
	}
	return panels
}

// The layout below the title.
const (
	linesHeight = 260
	legendStep  = 12
	axisBelow   = 30
	axisLeft    = 40
	panelGap    = 20
)

var smallGrey = paper.Style{Size: paper.SmallSize, Color: paper.Grey}

func drawLines(panels []scalingPanel) *paper.Paper {
	p := titled("On Redis, by goroutines", "decisions a second of one process; each panel has its own scale", linesHeight)
	legend := 20.0
	for _, l := range panels[0].lines {
		p.Box(l.color, chartWidth-margin-8, legend-6, chartWidth-margin, legend)
		p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Ink}, paper.End, chartWidth-margin-12, legend, l.name)
		legend += legendStep
	}
	width := (chartWidth - 2*margin - panelGap*float64(len(panels)-1)) / float64(len(panels))
	for i, panel := range panels {
		left := margin + float64(i)*(width+panelGap)
		panel.draw(p, left+axisLeft, legend+18, left+width, linesHeight-axisBelow)
	}
	return p
}

func (s scalingPanel) draw(p *paper.Paper, left, top, right, bottom float64) {
	highest := 1.0
	for _, l := range s.lines {
		highest = max(highest, slices.Max(l.values))
	}
	x := func(i int) float64 { return left + (right-left)*float64(i)/float64(max(1, len(s.goroutines)-1)) }
	y := func(v float64) float64 { return bottom - (bottom-top)*v/highest }
	p.Write(paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: true}, paper.Start, left, top-7, s.title)
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		at := y(share * highest)
		p.Line(paper.Rule, "", paper.Point{X: left, Y: at}, paper.Point{X: right, Y: at})
		p.Write(smallGrey, paper.End, left-5, at+2.8, harness.Number(share*highest))
	}
	for i, n := range s.goroutines {
		p.Write(smallGrey, paper.Center, x(i), bottom+11, n)
	}
	p.Write(smallGrey, paper.Center, (left+right)/2, bottom+22, "goroutines")
	for _, l := range s.lines {
		points := make([]paper.Point, len(l.values))
		for i, v := range l.values {
			points[i] = paper.Point{X: x(i), Y: y(v)}
		}
		p.Curve(l.color, points)
	}
}
