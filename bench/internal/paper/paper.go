// Package paper is an SVG to draw on, in the colors and letters that all pictures of this repository share.
package paper

import (
	"bytes"
	"image/color"
	"io"
	"math"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colors.
var (
	White  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	Ink    = color.NRGBA{0x1f, 0x23, 0x28, 0xff}
	Grey   = color.NRGBA{0x59, 0x63, 0x6e, 0xff} // still 6 to 1 on white
	Rule   = color.NRGBA{0xe4, 0xe8, 0xec, 0xff}
	Light  = color.NRGBA{0xc3, 0xd5, 0xea, 0xff}
	Dark   = color.NRGBA{0x1b, 0x5f, 0xb0, 0xff}
	Middle = color.NRGBA{0x86, 0xad, 0xd8, 0xff}
	Amber  = color.NRGBA{0xe3, 0x7b, 0x0b, 0xff}
)

// The sizes of text. A picture of 600 points is as wide as GitHub shows a README.
const (
	TitleSize = 13
	TextSize  = 9
	SmallSize = 8
)

var fonts = font.NewCache(liberation.Collection())

// Paper is an SVG to draw on, in points from the lower left corner.
type Paper struct {
	draw.Canvas
	svg *vgsvg.Canvas
}

// New is white, not transparent: a picture on a dark page is to stay legible.
func New(width, height vg.Length) *Paper {
	svg := vgsvg.New(width, height)
	p := &Paper{draw.New(svg), svg}
	p.Box(White, 0, 0, width, height)
	return p
}

// Save writes the SVG. Fonts are not embedded (they would be ten times the picture), and the library names only its own: name
// those that have the same widths and are everywhere, too.
func (p *Paper) Save(w io.Writer) error {
	var buffer bytes.Buffer
	if _, err := p.svg.WriteTo(&buffer); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(buffer.Bytes(),
		[]byte("font-family:Liberation Sans;"), []byte("font-family:Arial,Helvetica,Liberation Sans,sans-serif;")))
	return err
}

// Box fills a rectangle.
func (p *Paper) Box(fill color.Color, left, bottom, right, top vg.Length) {
	p.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}

// Line draws a thin line.
func (p *Paper) Line(stroke color.Color, dashes []vg.Length, x1, y1, x2, y2 vg.Length) {
	p.StrokeLine2(draw.LineStyle{Color: stroke, Width: 0.75, Dashes: dashes}, x1, y1, x2, y2)
}

// Style is how a piece of text looks.
type Style struct {
	Size  vg.Length
	Color color.Color
	Bold  bool
	Align text.XAlignment
}

func (s Style) face() font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if s.Bold {
		f.Weight = stdfont.WeightBold
	}
	return fonts.Lookup(f, s.Size)
}

// Width is how long the words are.
func (s Style) Width(words string) vg.Length {
	face := s.face()
	return face.Width(words)
}

// Write puts words onto a base line and returns where they end.
func (p *Paper) Write(s Style, x, y vg.Length, words string) vg.Length {
	length := s.Width(words)
	x += vg.Length(s.Align) * length
	p.SetColor(s.Color)
	p.FillString(s.face(), vg.Point{X: x, Y: y}, words)
	return x + length
}

// WriteUpwards puts words beside a vertical axis, centred on y.
func (p *Paper) WriteUpwards(s Style, x, y vg.Length, words string) {
	p.Push()
	p.Translate(vg.Point{X: x, Y: y})
	p.Rotate(math.Pi / 2)
	s.Align = text.XCenter
	p.Write(s, 0, 0, words)
	p.Pop()
}
