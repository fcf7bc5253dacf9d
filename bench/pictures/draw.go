package main

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/accesslimit/accesslimit/bench/figure"
)

// The heights of the two plots of a client, in points.
const (
	callsHeight = 114
	countHeight = 82
	header      = 48
)

// axis holds the values that a vertical axis shows besides 0, in order. It ends at the last one.
type axis []int

// countAxis has room for twice the limit: some algorithms let two windows' worth of calls through,
// or a burst and its refill.
var countAxis = axis{maxCalls, 2 * maxCalls}

// drawPicture draws what an algorithm did with each client's calls: how many arrived, how many were
// admitted, and how many admitted calls counted at the same time.
func drawPicture(path string, a algorithm, clients []client, graphs []graph) error {
	height := vg.Length(header + len(clients)*(callsHeight+countHeight))
	return figure.Save(path, a.title, a.promise, height, func(c draw.Canvas) {
		c.Max.X -= 10 // room for the right half of the last axis label
		top := c.Max.Y
		below := func(p *plot.Plot, height vg.Length) {
			left := 24 - p.DataCanvas(c).Min.X + c.Min.X // the same for all plots, whatever their numbers
			p.Draw(draw.Crop(c, left, 0, top-height-c.Min.Y, top-c.Max.Y))
			top -= height
		}
		for i, client := range clients {
			below(callsPlot(client, graphs[i]), callsHeight)
			below(countPlot(a, graphs[i]), countHeight)
		}
	})
}

// callsPlot shows the calls of a client, and those that were admitted, for each bar of time.
func callsPlot(c client, g graph) *plot.Plot {
	p := newPlot(c.axis)
	p.Title.Text = fmt.Sprintf("%s: %s; %d of %d calls admitted", c.name, c.about, sum(g.admitted), sum(g.offered))
	p.Add(area(g.offered, 0, c.axis, figure.Light), area(g.admitted, 0, c.axis, figure.Dark))
	return p
}

// countPlot shows how many admitted calls counted at the same time. The limit is the dashed line.
func countPlot(a algorithm, g graph) *plot.Plot {
	p := newPlot(countAxis)
	p.Title.Text = fmt.Sprintf("admitted calls %s: at most %d (amber: more than %d)", a.counted, slices.Max(g.together), maxCalls)
	limit := plotter.NewFunction(func(float64) float64 { return maxCalls })
	limit.Color, limit.Width, limit.Dashes = figure.Ink, 0.75, []vg.Length{3, 2}
	limit.XMin, limit.XMax, limit.Samples = 0, runTime.Seconds(), 2
	p.Add(area(g.together, 0, countAxis, figure.Medium), area(g.together, maxCalls, countAxis, figure.Amber), limit)
	return p
}

// newPlot returns a plot over the seconds of the run, with a grid.
func newPlot(a axis) *plot.Plot {
	p := figure.New()
	p.X.Max, p.Y.Max = runTime.Seconds(), float64(a[len(a)-1])
	var seconds, values plot.ConstantTicks
	for second := 0.0; second <= p.X.Max; second += 5 {
		seconds = append(seconds, plot.Tick{Value: second, Label: strconv.FormatFloat(second, 'f', 0, 64) + " s"})
	}
	for _, value := range a {
		values = append(values, plot.Tick{Value: float64(value), Label: strconv.Itoa(value)})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = seconds, values
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = figure.Rule, figure.Rule
	p.Add(grid)
	return p
}

// area fills the space between a base and the values above it. It is one outline instead of a bar
// for each value, so that the file stays small and no seams show. Values beyond the axis are cut
// off, because a busy machine may crowd calls into one bar.
func area(values []int, base int, a axis, fill color.Color) *plotter.Polygon {
	seconds := barWidth.Seconds()
	outline := plotter.XYs{{X: 0, Y: float64(base)}}
	for i, value := range values {
		y := float64(min(max(value, base), a[len(a)-1]))
		if last := outline[len(outline)-1].Y; last != y {
			x := float64(i) * seconds
			outline = append(outline, plotter.XY{X: x, Y: last}, plotter.XY{X: x, Y: y})
		}
	}
	end := float64(len(values)) * seconds
	outline = append(outline, plotter.XY{X: end, Y: outline[len(outline)-1].Y}, plotter.XY{X: end, Y: float64(base)})
	polygon, err := plotter.NewPolygon(outline)
	if err != nil {
		panic(err) // none of these numbers is NaN
	}
	polygon.Color, polygon.LineStyle.Width = fill, 0
	return polygon
}
