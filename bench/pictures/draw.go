package main

import (
	"fmt"
	"io"
	"slices"

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

var (
	small     = paper.Style{Size: paper.SmallSize, Color: paper.Ink}
	smallGrey = paper.Style{Size: paper.SmallSize, Color: paper.Grey}
	textGrey  = paper.Style{Size: paper.TextSize, Color: paper.Grey}
	textBold  = paper.Style{Size: paper.TextSize, Color: paper.Ink, Bold: true}
	titleBold = paper.Style{Size: paper.TitleSize, Color: paper.Ink, Bold: true}
)

// countAxis has room for the algorithms whose promise lets two windows' worth of calls through, or
// a burst and its refill.
var countAxis = axis{maxCalls, 2 * maxCalls}

// picture is the paper for one algorithm.
type picture struct{ *paper.Paper }

// drawPicture shows what an algorithm made of each client's calls: how many came, how many were
// admitted, and how many admitted ones counted together.
func drawPicture(w io.Writer, a algorithm, clients []client, graphs []graph) error {
	oneClient := 2*caption + callsHeight + countHeight
	p := picture{paper.New(width, float64(header+len(clients)*(oneClient+gap)-gap+footer))}
	p.Write(titleBold, paper.Start, margin, 20, a.title)
	p.Write(textGrey, paper.Start, margin, 34, a.promise)
	p.legend(20, a)
	for i, c := range clients {
		last := p.client(float64(header+i*(oneClient+gap)), a, c, graphs[i])
		if i == len(clients)-1 {
			last.seconds()
		}
	}
	return p.Save(w)
}

// legend explains the colors, from right to left.
func (p picture) legend(y float64, a algorithm) {
	x := float64(width - margin)
	for _, entry := range []struct{ color, words string }{
		{paper.Amber, fmt.Sprintf("more than %d %s", maxCalls, a.counted)},
		{paper.Dark, "admitted"},
		{paper.Light, "offered"},
	} {
		x -= small.Width(entry.words)
		p.Write(small, paper.Start, x, y, entry.words)
		p.Box(entry.color, x-12, y-7, x-4, y+1)
		x -= 22
	}
}

// client draws a client's two panels below top, and returns the lower one.
func (p picture) client(top float64, a algorithm, c client, g graph) panel {
	p.Write(textBold, paper.Start, numbers, top+caption-6, c.name)
	p.Write(smallGrey, paper.Start, numbers+textBold.Width(c.name)+6, top+caption-6, c.about)
	p.Write(small, paper.End, width-margin, top+caption-6,
		fmt.Sprintf("%d of %d calls admitted", sum(g.admitted), sum(g.offered)))
	top += caption
	calls := panel{p, numbers, top, width - margin, top + callsHeight, c.axis}
	calls.grid()
	calls.area(paper.Light, 0, g.offered)
	calls.area(paper.Dark, 0, g.admitted)
	p.WriteUpwards(smallGrey, margin+4, (calls.top+calls.bottom)/2, "calls per 100 ms")

	top = calls.bottom + caption
	p.Write(smallGrey, paper.Start, numbers, top-5,
		fmt.Sprintf("admitted calls %s: at most %d", a.counted, slices.Max(g.together)))
	count := panel{p, numbers, top, width - margin, top + countHeight, countAxis}
	count.grid()
	count.area(paper.Medium, 0, g.together)
	count.area(paper.Amber, maxCalls, g.together)
	count.level(paper.Ink, "3,2", maxCalls)
	return count
}
