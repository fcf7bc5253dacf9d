package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// The layout, in points from top to bottom.
const (
	width       = 600
	margin      = 14
	numbers     = 42 // left of the panels
	header      = 46
	caption     = 16 // above a panel
	callsHeight = 78
	countHeight = 34
	gap         = 10 // between clients
	footer      = 22
)

// countAxis ends where an algorithm's promise still holds that lets two windows' worth, or a burst and what comes back, through.
var countAxis = axis{maxCalls, 2 * maxCalls}

// drawPicture shows what an algorithm made of each client's calls: how many came and how many were admitted, and below how many
// of the admitted counted together.
func drawPicture(w io.Writer, a algorithm, clients []client, graphs []graph) error {
	oneClient := 2*caption + callsHeight + countHeight
	height := vg.Length(header + len(clients)*(oneClient+gap) - gap + footer)
	p := newPaper(width, height)
	p.write(style{size: titleSize, color: ink, bold: true}, margin, height-20, a.title)
	p.write(style{size: textSize, color: grey}, margin, height-34, a.promise)
	p.legend(height-20, a)
	for i, c := range clients {
		top := height - header - vg.Length(i*(oneClient+gap))
		last := p.client(top, a, c, graphs[i])
		if i == len(clients)-1 {
			last.seconds()
		}
	}
	return p.writeTo(w)
}

// legend says what the colors are, from right to left.
func (p *paper) legend(y vg.Length, a algorithm) {
	x := vg.Length(width - margin)
	words := style{size: smallSize, color: ink, align: text.XRight}
	for _, entry := range []struct {
		color color.Color
		words string
	}{{amber, fmt.Sprintf("more than %d %s", maxCalls, a.counted)}, {dark, "admitted"}, {light, "offered"}} {
		p.write(words, x, y, entry.words)
		x -= words.width(entry.words) + 12
		p.box(entry.color, x, y-1, x+8, y+7)
		x -= 10
	}
}

// client draws a client's two panels below top, and returns the lower one.
func (p *paper) client(top vg.Length, a algorithm, c client, g graph) panel {
	end := p.write(style{size: textSize, color: ink, bold: true}, numbers, top-caption+6, c.name)
	p.write(style{size: smallSize, color: grey}, end+6, top-caption+6, c.about)
	p.write(style{size: smallSize, color: ink, align: text.XRight}, width-margin, top-caption+6,
		fmt.Sprintf("%d of %d calls admitted", sum(g.admitted), sum(g.offered)))
	calls := panel{p, numbers, top - caption - callsHeight, width - margin, top - caption, c.axis}
	calls.grid()
	calls.area(light, 0, g.offered)
	calls.area(dark, 0, g.admitted)
	p.writeUpwards(style{size: smallSize, color: grey}, margin+8, (calls.bottom+calls.top)/2, "calls per 100 ms")

	p.write(style{size: smallSize, color: grey}, numbers, calls.bottom-caption+5,
		fmt.Sprintf("admitted calls %s: at most %d", a.counted, slices.Max(g.together)))
	count := panel{p, numbers, calls.bottom - caption - countHeight, width - margin, calls.bottom - caption, countAxis}
	count.grid()
	count.area(middle, 0, g.together)
	count.area(amber, maxCalls, g.together)
	p.line(ink, []vg.Length{3, 2}, count.left, count.y(maxCalls), count.right, count.y(maxCalls))
	return count
}
