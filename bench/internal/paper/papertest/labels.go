// Package papertest checks the layout of pictures drawn with package paper.
package papertest

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The room that a letter takes in a font as wide as DejaVu Sans, as a share of the font's size.
const (
	letterWidth     = 0.66
	boldLetterWidth = 0.72
	letterAbove     = 0.75 // the base line
	letterBelow     = 0.22
)

// CheckLabels fails the test if a label of the SVG leaves the frame, or touches a shape or another
// label, in a wide font.
func CheckLabels(t testing.TB, name string, svg []byte) {
	t.Helper()
	problems, err := Problems(svg)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", name, problem)
	}
}

// Problems returns a sentence for each label that is not clear of everything else.
func Problems(svg []byte) (problems []string, err error) {
	var d drawing
	if err := xml.Unmarshal(svg, &d); err != nil {
		return nil, err
	}
	frame := d.Boxes[0].area()
	if len(d.Texts) == 0 || frame.right != d.Width() {
		return nil, fmt.Errorf("no labels, or no white sheet of the picture's size")
	}
	shapes := d.shapes()
	for i, t := range d.Texts {
		label := t.area()
		if !label.within(frame) {
			problems = append(problems, fmt.Sprintf("%q leaves the frame: %v", t.Words, label))
		}
		for _, s := range shapes {
			if label.touches(s) {
				problems = append(problems, fmt.Sprintf("%q touches a shape: %v, %v", t.Words, label, s))
			}
		}
		for _, other := range d.Texts[:i] {
			if label.touches(other.area()) {
				problems = append(problems, fmt.Sprintf("%q touches %q", t.Words, other.Words))
			}
		}
	}
	return problems, nil
}

// drawing is an SVG as package paper writes it. The first box is the sheet.
type drawing struct {
	ViewBox  string    `xml:"viewBox,attr"`
	Boxes    []box     `xml:"rect"`
	Lines    []line    `xml:"line"`
	Curves   []outline `xml:"polyline"`
	Polygons []outline `xml:"polygon"`
	Texts    []label   `xml:"text"`
}

// Width returns the width of the picture.
func (d drawing) Width() float64 {
	return numbers(d.ViewBox)[2]
}

func (d drawing) shapes() (all []area) {
	for _, b := range d.Boxes[1:] {
		all = append(all, b.area())
	}
	for _, l := range d.Lines {
		all = append(all, bounds([]float64{l.X1, l.Y1, l.X2, l.Y2}))
	}
	for _, o := range append(d.Curves, d.Polygons...) {
		all = append(all, bounds(numbers(o.Points)))
	}
	return all
}

type box struct {
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Width  float64 `xml:"width,attr"`
	Height float64 `xml:"height,attr"`
}

func (b box) area() area { return area{b.X, b.Y, b.X + b.Width, b.Y + b.Height} }

type line struct {
	X1 float64 `xml:"x1,attr"`
	Y1 float64 `xml:"y1,attr"`
	X2 float64 `xml:"x2,attr"`
	Y2 float64 `xml:"y2,attr"`
}

type outline struct {
	Points string `xml:"points,attr"`
}

type label struct {
	X         float64 `xml:"x,attr"`
	Y         float64 `xml:"y,attr"`
	Transform string  `xml:"transform,attr"` // translate(x y) rotate(-90), or ""
	Anchor    string  `xml:"text-anchor,attr"`
	Size      string  `xml:"font-size,attr"`
	Weight    string  `xml:"font-weight,attr"`
	Words     string  `xml:",chardata"`
}

func (l label) area() area {
	size := numbers(strings.TrimSuffix(l.Size, "px"))[0]
	width := letterWidth
	if l.Weight == "bold" {
		width = boldLetterWidth
	}
	width *= size * float64(utf8.RuneCountInString(l.Words))
	left := map[string]float64{"start": 0, "middle": -width / 2, "end": -width}[l.Anchor]
	if place, upwards := strings.CutPrefix(l.Transform, "translate("); upwards {
		place, _, _ = strings.Cut(place, ")")
		at := numbers(place)
		return area{at[0] - letterAbove*size, at[1] + left, at[0] + letterBelow*size, at[1] + left + width}
	}
	return area{l.X + left, l.Y - letterAbove*size, l.X + left + width, l.Y + letterBelow*size}
}

// area is a rectangle of the picture, whose y axis points downwards.
type area struct{ left, top, right, bottom float64 }

func (a area) within(b area) bool {
	return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom
}

func (a area) touches(b area) bool {
	return a.left <= b.right && b.left <= a.right && a.top <= b.bottom && b.top <= a.bottom
}

// bounds returns the smallest area that holds all points, given as x, y, x, y and so on.
func bounds(points []float64) area {
	a := area{points[0], points[1], points[0], points[1]}
	for i := 0; i < len(points); i += 2 {
		a.left, a.right = min(a.left, points[i]), max(a.right, points[i])
		a.top, a.bottom = min(a.top, points[i+1]), max(a.bottom, points[i+1])
	}
	return a
}

// numbers returns the numbers of a list that is separated by spaces or commas. It panics if there
// is anything else in it, which fails the test.
func numbers(list string) (all []float64) {
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil {
			panic(err)
		}
		all = append(all, number)
	}
	return all
}
