package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
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

// picture is what one algorithm's is drawn on.
type picture struct{ *paper.Paper }

// drawPicture shows what an algorithm made of each client's calls: how many came and how many were admitted, and below how many
// of the admitted counted together.
func drawPicture(w io.Writer, a algorithm, clients []client, graphs []graph) error {
	oneClient := 2*caption + callsHeight + countHeight
	height := vg.Length(header + len(clients)*(oneClient+gap) - gap + footer)
	p := picture{paper.New(width, height)}
	p.Write(paper.Style{Size: paper.TitleSize, Color: paper.Ink, Bold: true}, margin, height-20, a.title)
	p.Write(paper.Style{Size: paper.TextSize, Color: paper.Grey}, margin, height-34, a.promise)
	p.legend(height-20, a)
	for i, c := range clients {
		top := height - header - vg.Length(i*(oneClient+gap))
		last := p.client(top, a, c, graphs[i])
		if i == len(clients)-1 {
			last.seconds()
		}
	}
	return p.Save(w)
}

// legend says what the colors are, from right to left.
func (p picture) legend(y vg.Length, a algorithm) {
	x := vg.Length(width - margin)
	words := paper.Style{Size: paper.SmallSize, Color: paper.Ink, Align: text.XRight}
	for _, entry := range []struct {
		color color.Color
		words string
	}{{paper.Amber, fmt.Sprintf("more than %d %s", maxCalls, a.counted)}, {paper.Dark, "admitted"}, {paper.Light, "offered"}} {
		p.Write(words, x, y, entry.words)
		x -= words.Width(entry.words) + 12
		p.Box(entry.color, x, y-1, x+8, y+7)
		x -= 10
	}
}

// client draws a client's two panels below top, and returns the lower one.
func (p picture) client(top vg.Length, a algorithm, c client, g graph) panel {
	end := p.Write(paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: true}, numbers, top-caption+6, c.name)
	p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Grey}, end+6, top-caption+6, c.about)
	p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Ink, Align: text.XRight}, width-margin, top-caption+6,
		fmt.Sprintf("%d of %d calls admitted", sum(g.admitted), sum(g.offered)))
	calls := panel{p, numbers, top - caption - callsHeight, width - margin, top - caption, c.axis}
	calls.grid()
	calls.area(paper.Light, 0, g.offered)
	calls.area(paper.Dark, 0, g.admitted)
	p.WriteUpwards(paper.Style{Size: paper.SmallSize, Color: paper.Grey}, margin+8, (calls.bottom+calls.top)/2, "calls per 100 ms")

	p.Write(paper.Style{Size: paper.SmallSize, Color: paper.Grey}, numbers, calls.bottom-caption+5,
		fmt.Sprintf("admitted calls %s: at most %d", a.counted, slices.Max(g.together)))
	count := panel{p, numbers, calls.bottom - caption - countHeight, width - margin, calls.bottom - caption, countAxis}
	count.grid()
	count.area(paper.Middle, 0, g.together)
	count.area(paper.Amber, maxCalls, g.together)
	p.Line(paper.Ink, []vg.Length{3, 2}, count.left, count.y(maxCalls), count.right, count.y(maxCalls))
	return count
}
