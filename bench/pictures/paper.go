package main

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

var (
	white  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink    = color.NRGBA{0x1f, 0x23, 0x28, 0xff}
	grey   = color.NRGBA{0x59, 0x63, 0x6e, 0xff} // still 6 to 1 on white
	rule   = color.NRGBA{0xe4, 0xe8, 0xec, 0xff}
	light  = color.NRGBA{0xc3, 0xd5, 0xea, 0xff}
	dark   = color.NRGBA{0x1b, 0x5f, 0xb0, 0xff}
	middle = color.NRGBA{0x86, 0xad, 0xd8, 0xff}
	amber  = color.NRGBA{0xe3, 0x7b, 0x0b, 0xff}
)

// The sizes of text. A picture of 600 points is as wide as GitHub shows a README.
const (
	titleSize = 13
	textSize  = 9
	smallSize = 8
)

var fonts = font.NewCache(liberation.Collection())

// paper is an SVG to draw on, in points from the lower left corner.
type paper struct {
	draw.Canvas
	svg *vgsvg.Canvas
}

// newPaper is white, not transparent: a picture on a dark page is to stay legible.
func newPaper(width, height vg.Length) *paper {
	svg := vgsvg.New(width, height)
	p := &paper{draw.New(svg), svg}
	p.box(white, 0, 0, width, height)
	return p
}

// writeTo writes the SVG. Fonts are not embedded (they would be ten times the picture), and the library names only its own: name
// those that have the same widths and are everywhere, too.
func (p *paper) writeTo(w io.Writer) error {
	var buffer bytes.Buffer
	if _, err := p.svg.WriteTo(&buffer); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(buffer.Bytes(),
		[]byte("font-family:Liberation Sans;"), []byte("font-family:Arial,Helvetica,Liberation Sans,sans-serif;")))
	return err
}

func (p *paper) box(fill color.Color, left, bottom, right, top vg.Length) {
	p.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}

func (p *paper) line(stroke color.Color, dashes []vg.Length, x1, y1, x2, y2 vg.Length) {
	p.StrokeLine2(draw.LineStyle{Color: stroke, Width: 0.75, Dashes: dashes}, x1, y1, x2, y2)
}

// style is how a piece of text looks.
type style struct {
	size  vg.Length
	color color.Color
	bold  bool
	align text.XAlignment
}

func (s style) face() font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if s.bold {
		f.Weight = stdfont.WeightBold
	}
	return fonts.Lookup(f, s.size)
}

func (s style) width(words string) vg.Length {
	face := s.face()
	return face.Width(words)
}

// write puts words onto a base line and returns where they end.
func (p *paper) write(s style, x, y vg.Length, words string) vg.Length {
	length := s.width(words)
	x += vg.Length(s.align) * length
	p.SetColor(s.color)
	p.FillString(s.face(), vg.Point{X: x, Y: y}, words)
	return x + length
}

// writeUpwards puts words beside a vertical axis, centred on y.
func (p *paper) writeUpwards(s style, x, y vg.Length, words string) {
	p.Push()
	p.Translate(vg.Point{X: x, Y: y})
	p.Rotate(math.Pi / 2)
	s.align = text.XCenter
	p.write(s, 0, 0, words)
	p.Pop()
}
