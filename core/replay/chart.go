package replay

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Chart has the calls over time, in columns of equal width, the first from Start (UTC). Passed and
// Refused have one number of calls for each column.
type Chart struct {
	Start        time.Time `json:"start"`
	WidthSeconds float64   `json:"width_seconds"`
	Passed       []int     `json:"passed"`
	Refused      []int     `json:"refused"`
}

// chart returns the calls over time.
func (t *timeline) chart() Chart {
	c := Chart{Start: timeOf(t.start), WidthSeconds: seconds(t.width)}
	for _, column := range t.columns {
		c.Passed, c.Refused = append(c.Passed, column.passed), append(c.Refused, column.refused)
	}
	return c
}

// The picture, in pixels.
const (
	pictureWidth, pictureHeight   = 960, 320
	plotLeft, plotTop             = 72, 48
	plotWidth, plotHeight         = pictureWidth - plotLeft - 16, pictureHeight - plotTop - 40
	passedColour, refusedColour   = "#4c8bb8", "#c8442e"
	textColour, lineColour, paper = "#333", "#ccc", "#fff"
)

// SVG returns the chart as an SVG document with this title as plain text: the calls that passed, and
// on top of them those that were refused.
func (c Chart) SVG(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="%s">`+"\n",
		pictureWidth, pictureHeight, textColour)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", pictureWidth, pictureHeight, paper)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	c.legend(&b)
	top := c.highest()
	c.scale(&b, top)
	c.area(&b, top, c.offered(), refusedColour)
	c.area(&b, top, c.Passed, passedColour)
	b.WriteString("</svg>\n")
	return b.String()
}

// offered returns the calls that passed or were refused.
func (c Chart) offered() []int {
	sums := make([]int, len(c.Passed))
	for i := range sums {
		sums[i] = c.Passed[i] + c.Refused[i]
	}
	return sums
}

// highest returns the end of the scale: a round number of calls in a column.
func (c Chart) highest() int {
	most := 1
	for _, n := range c.offered() {
		most = max(most, n)
	}
	for unit := 1; ; unit *= 10 {
		for _, round := range []int{1, 2, 4, 5, 8, 10} {
			if round*unit >= most {
				return round * unit
			}
		}
	}
}

func (c Chart) legend(b *strings.Builder) {
	for i, entry := range []struct{ text, colour string }{{"passed", passedColour}, {"refused", refusedColour}} {
		x := plotLeft + i*90
		fmt.Fprintf(b, `<rect x="%d" y="29" width="10" height="10" fill="%s"/><text x="%d" y="38">%s</text>`+"\n", x, entry.colour, x+15, entry.text)
	}
	fmt.Fprintf(b, `<text x="%d" y="38">calls in %v</text>`+"\n", plotLeft+180, time.Duration(c.WidthSeconds)*time.Second)
}

// scale draws the lines behind the columns, with their numbers and times.
func (c Chart) scale(b *strings.Builder, top int) {
	for i := range 5 {
		y := plotTop + plotHeight - plotHeight*i/4
		fmt.Fprintf(b, `<path d="M%d %dh%d" stroke="%s"/><text x="%d" y="%d" text-anchor="end">%g</text>`+"\n",
			plotLeft, y, plotWidth, lineColour, plotLeft-8, y+4, float64(top*i)/4)
	}
	span := time.Duration(c.WidthSeconds*float64(len(c.Passed))) * time.Second
	layout := "15:04:05"
	if span > 24*time.Hour {
		layout = "2006-01-02 15:04"
	}
	for i, anchor := range []string{"start", "middle", "end"} {
		at := c.Start.Add(span * time.Duration(i) / 2)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", plotLeft+plotWidth*i/2, plotTop+plotHeight+20, anchor, at.Format(layout))
	}
	fmt.Fprintf(b, `<text x="%d" y="20" text-anchor="end">%s UTC</text>`+"\n", plotLeft+plotWidth, c.Start.Format("2006-01-02"))
}

// area draws the columns of these heights as one shape.
func (c Chart) area(b *strings.Builder, top int, heights []int, colour string) {
	fmt.Fprintf(b, `<path fill="%s" d="M%d %d`, colour, plotLeft, plotTop+plotHeight)
	for i, n := range heights {
		fmt.Fprintf(b, "V%.1fH%.1f", float64(plotTop+plotHeight)-float64(plotHeight)*float64(n)/float64(top),
			plotLeft+float64(plotWidth)*float64(i+1)/float64(len(heights)))
	}
	fmt.Fprintf(b, `V%dz"/>`+"\n", plotTop+plotHeight)
}
