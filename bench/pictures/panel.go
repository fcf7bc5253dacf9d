package main

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
)

// axis is the values that a vertical axis names beside 0, in order. The last one is where it ends.
type axis []int

// everySeconds is how far apart the marks of time are.
const everySeconds = 5

// panel is a coordinate system on the paper: the run's time from left to right, an axis upwards.
type panel struct {
	picture
	left, bottom, right, top vg.Length
	axis                     axis
}

func (p panel) x(bar, bars int) vg.Length {
	return p.left + (p.right-p.left)*vg.Length(bar)/vg.Length(bars)
}

// y is where a value is. One above the axis is at its end: a run on a busy machine may crowd calls into a bar.
func (p panel) y(value int) vg.Length {
	end := p.axis[len(p.axis)-1]
	return p.bottom + (p.top-p.bottom)*vg.Length(min(value, end))/vg.Length(end)
}

// grid draws what is behind the areas, and the axis' numbers.
func (p panel) grid() {
	for second := 0; second <= int(runTime.Seconds()); second += everySeconds {
		x := p.x(second, int(runTime.Seconds()))
		p.Line(paper.Rule, nil, x, p.bottom, x, p.top)
	}
	for _, value := range append(axis{0}, p.axis...) {
		p.Line(paper.Rule, nil, p.left, p.y(value), p.right, p.y(value))
		p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Grey, Align: text.XRight}, p.left-5, p.y(value)-2.8, strconv.Itoa(value))
	}
}

// seconds numbers the time below the panel. The last number has the unit, and ends with the panel.
func (p panel) seconds() {
	last := int(runTime.Seconds())
	for second := 0; second < last; second += everySeconds {
		p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Grey, Align: text.XCenter}, p.x(second, last), p.bottom-11, strconv.Itoa(second))
	}
	p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Grey, Align: text.XRight}, p.right, p.bottom-11, strconv.Itoa(last)+" s")
}

// area fills what is between a base and the values, and nothing where they are below it. It is one outline, not a box for each
// value, so that the file stays small and no seams show.
func (p panel) area(fill color.Color, base int, values []int) {
	outline := []vg.Point{{X: p.left, Y: p.y(base)}}
	for i, value := range values {
		if before := outline[len(outline)-1].Y; before != p.y(max(value, base)) {
			x := p.x(i, len(values))
			outline = append(outline, vg.Point{X: x, Y: before}, vg.Point{X: x, Y: p.y(max(value, base))})
		}
	}
	outline = append(outline, vg.Point{X: p.right, Y: outline[len(outline)-1].Y}, vg.Point{X: p.right, Y: p.y(base)})
	p.FillPolygon(fill, outline)
}
