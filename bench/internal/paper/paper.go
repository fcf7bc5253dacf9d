// Package paper draws SVG pictures in the colors and letters that all pictures of this repository
// share.
//
// Fonts are not embedded, because they would be ten times the picture, so the width of the letters
// is up to the reader's machine. A text is therefore anchored at its start, middle or end, and the
// layout reserves Style.Width for it, which is enough for any usual font.
package paper

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// The colors.
const (
	White  = "#FFFFFF"
	Ink    = "#1F2328"
	Grey   = "#59636E" // still 6 to 1 on white
	Rule   = "#E4E8EC"
	Light  = "#C3D5EA"
	Dark   = "#1B5FB0"
	Medium = "#86ADD8"
	Amber  = "#E37B0B"
	Green  = "#2F8F5B"
)

// The sizes of text. A picture of 600 points is as wide as GitHub shows a README.
const (
	TitleSize = 13
	TextSize  = 9
	SmallSize = 8
)

// Point is a place on the paper, in points from the upper left corner.
type Point struct{ X, Y float64 }

// Paper is a picture in progress.
type Paper struct {
	width, height float64
	elements      bytes.Buffer
}

// New returns a white sheet. It is not transparent, so that it stays legible on a dark page.
func New(width, height float64) *Paper {
	p := &Paper{width: width, height: height}
	p.Box(White, 0, 0, width, height)
	return p
}

// Save writes the SVG.
func (p *Paper) Save(w io.Writer) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" `+
		`width="%gpt" height="%gpt" viewBox="0 0 %[1]g %[2]g" `+
		`font-family="Arial,Helvetica,Liberation Sans,sans-serif">`+"\n%s</svg>\n",
		p.width, p.height, p.elements.Bytes())
	return err
}

func (p *Paper) add(format string, values ...any) {
	for i, v := range values {
		if number, ok := v.(float64); ok {
			values[i] = math.Round(number*100) / 100
		}
	}
	fmt.Fprintf(&p.elements, format+"\n", values...)
}

// Box fills a rectangle.
func (p *Paper) Box(fill string, left, top, right, bottom float64) {
	p.add(`<rect x="%v" y="%v" width="%v" height="%v" fill="%s"/>`, left, top, right-left, bottom-top, fill)
}

// Line draws a thin line. The dashes are those of SVG's stroke-dasharray, or "" for none.
func (p *Paper) Line(stroke, dashes string, from, to Point) {
	if dashes != "" {
		dashes = ` stroke-dasharray="` + dashes + `"`
	}
	p.add(`<line x1="%v" y1="%v" x2="%v" y2="%v" stroke="%s" stroke-width="0.75"%s/>`,
		from.X, from.Y, to.X, to.Y, stroke, dashes)
}

// Curve draws a line through the points.
func (p *Paper) Curve(stroke string, points []Point) {
	p.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.75"/>`, list(points), stroke)
}

// Area fills the outline that the points make.
func (p *Paper) Area(fill string, outline []Point) {
	p.add(`<polygon points="%s" fill="%s"/>`, list(outline), fill)
}

func list(points []Point) string {
	words := make([]string, len(points))
	for i, at := range points {
		words[i] = fmt.Sprintf("%v,%v", math.Round(at.X*100)/100, math.Round(at.Y*100)/100)
	}
	return strings.Join(words, " ")
}

// Anchor is the part of a text that stays in place whatever the font is.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Center Anchor = "middle"
	End    Anchor = "end"
)

// Style is how a piece of text looks.
type Style struct {
	Size  float64
	Color string
	Bold  bool
}

// Width returns the room to reserve for words. DejaVu Sans, which has the widest letters among the
// usual fonts, needs at most 0.64 of the size for each letter of our labels, and 0.70 in bold.
func (s Style) Width(words string) float64 {
	each := 0.68
	if s.Bold {
		each = 0.74
	}
	return each * s.Size * float64(utf8.RuneCountInString(words))
}

func (s Style) attributes() string {
	weight := ""
	if s.Bold {
		weight = ` font-weight="bold"`
	}
	return fmt.Sprintf(`font-size="%vpx" fill="%s"%s`, s.Size, s.Color, weight)
}

// Write puts words onto a base line.
func (p *Paper) Write(s Style, anchor Anchor, x, y float64, words string) {
	p.add(`<text x="%v" y="%v" text-anchor="%s" %s>%s</text>`, x, y, anchor, s.attributes(), escaped(words))
}

// WriteUpwards puts words beside a vertical axis, centered on y.
func (p *Paper) WriteUpwards(s Style, x, y float64, words string) {
	p.add(`<text transform="translate(%v %v) rotate(-90)" text-anchor="middle" %s>%s</text>`,
		x, y, s.attributes(), escaped(words))
}

func escaped(words string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(words)) // a strings.Builder does not fail
	return b.String()
}
