package main

import (
	"strconv"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
)

// axis holds the values that a vertical axis shows besides 0, in order. It ends at the last one.
type axis []int

// everySeconds is the distance of the marks of time.
const everySeconds = 5

// panel is a coordinate system on the paper: the time of the run from left to right, and an axis
// upwards.
type panel struct {
	picture
	left, top, right, bottom float64
	axis                     axis
}

func (p panel) x(bar, bars int) float64 {
	return p.left + (p.right-p.left)*float64(bar)/float64(bars)
}

// y returns the place of a value. A value above the axis is drawn at its end: a busy machine may
// crowd calls into one bar.
func (p panel) y(value int) float64 {
	end := p.axis[len(p.axis)-1]
	return p.bottom - (p.bottom-p.top)*float64(min(value, end))/float64(end)
}

// grid draws the lines behind the areas, and the numbers of the axis.
func (p panel) grid() {
	for second := 0; second <= int(runTime.Seconds()); second += everySeconds {
		x := p.x(second, int(runTime.Seconds()))
		p.Line(paper.Rule, "", paper.Point{X: x, Y: p.top}, paper.Point{X: x, Y: p.bottom})
	}
	for _, value := range append(axis{0}, p.axis...) {
		p.level(paper.Rule, "", value)
		p.Write(smallGrey, paper.End, p.left-5, p.y(value)+2.8, strconv.Itoa(value))
	}
}

// level draws a line across the panel.
func (p panel) level(stroke, dashes string, value int) {
	p.Line(stroke, dashes, paper.Point{X: p.left, Y: p.y(value)}, paper.Point{X: p.right, Y: p.y(value)})
}

// seconds numbers the time below the panel. The last number has the unit and ends with the panel.
func (p panel) seconds() {
	last := int(runTime.Seconds())
	for second := 0; second < last; second += everySeconds {
		p.Write(smallGrey, paper.Center, p.x(second, last), p.bottom+11, strconv.Itoa(second))
	}
	p.Write(smallGrey, paper.End, p.right, p.bottom+11, strconv.Itoa(last)+" s")
}

// area fills the space between a base and the values that are above it. It is one outline, not a
// box for each value, so that the file stays small and no seams show.
func (p panel) area(fill string, base int, values []int) {
	outline := []paper.Point{{X: p.left, Y: p.y(base)}}
	for i, value := range values {
		if before := outline[len(outline)-1].Y; before != p.y(max(value, base)) {
			x := p.x(i, len(values))
			outline = append(outline, paper.Point{X: x, Y: before}, paper.Point{X: x, Y: p.y(max(value, base))})
		}
	}
	last := outline[len(outline)-1].Y
	p.Area(fill, append(outline, paper.Point{X: p.right, Y: last}, paper.Point{X: p.right, Y: p.y(base)}))
}
