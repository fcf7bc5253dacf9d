// Package figure draws SVG pictures with gonum/plot, all in one style, for light and dark pages.
package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colors, as they are on a light page.
var (
	White  = color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
	Ink    = color.RGBA{0x1F, 0x23, 0x28, 0xFF}
	Grey   = color.RGBA{0x59, 0x63, 0x6E, 0xFF}
	Rule   = color.RGBA{0xE4, 0xE8, 0xEC, 0xFF}
	Light  = color.RGBA{0xC3, 0xD5, 0xEA, 0xFF}
	Medium = color.RGBA{0x86, 0xAD, 0xD8, 0xFF}
	Dark   = color.RGBA{0x1B, 0x5F, 0xB0, 0xFF}
	Amber  = color.RGBA{0xE3, 0x7B, 0x0B, 0xFF}
)

// onDark has the colors that replace them on a dark page. Amber is the same on both.
var onDark = map[color.RGBA]color.RGBA{
	White:  {0x0D, 0x11, 0x17, 0xFF},
	Ink:    {0xE6, 0xED, 0xF3, 0xFF},
	Grey:   {0x91, 0x98, 0xA1, 0xFF},
	Rule:   {0x26, 0x2C, 0x36, 0xFF},
	Light:  {0x2F, 0x4A, 0x6B, 0xFF},
	Medium: {0x3F, 0x70, 0xA8, 0xFF},
	Dark:   {0x6C, 0xB0, 0xFF, 0xFF},
}

// The layout, in points. A picture of 600 points is as wide as GitHub shows a README.
const (
	width  = 600
	margin = 14
	header = 44
)

// Style returns a text style of a size and color. The text starts at the point where it is drawn.
func Style(size vg.Length, c color.Color) text.Style {
	sans := font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	return text.Style{Color: c, Font: sans, Handler: plot.DefaultTextHandler}
}

// New returns an empty plot.
func New() *plot.Plot {
	p := plot.New()
	p.Title.Padding = 5
	p.Title.TextStyle.Font = Style(9, Ink).Font
	p.Title.TextStyle.Color = Ink
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Width, axis.Tick.LineStyle.Width, axis.Tick.Length, axis.Padding = 0, 0, 3, 0
		axis.Tick.Label.Font, axis.Tick.Label.Color = Style(8.5, Ink).Font, Ink
	}
	return p
}

// Save writes a picture with a title and a line below it. paint draws into the remaining space.
func Save(path, title, subtitle string, height vg.Length, paint func(draw.Canvas)) error {
	svg := vgsvg.NewWith(vgsvg.UseWH(width, height))
	sheet := draw.New(svg)
	sheet.SetColor(White)
	sheet.Fill(sheet.Rectangle.Path())
	sheet.FillText(Style(13, Ink), vg.Point{X: margin, Y: height - 20}, title)
	sheet.FillText(Style(9, Grey), vg.Point{X: margin, Y: height - 34}, subtitle)
	paint(draw.Crop(sheet, margin, -margin, margin/2, -header))
	var out bytes.Buffer
	if _, err := svg.WriteTo(&out); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(finished(out.String())), 0o644)
}

// finished names fonts that every reader has, and adds the colors for dark pages. The letters of
// Arial and Helvetica are as wide as those of Liberation Sans, which was used for the layout.
func finished(svg string) string {
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;", "font-family:Arial,Helvetica,Liberation Sans,sans-serif;")
	var style strings.Builder
	style.WriteString("<style>@media (prefers-color-scheme: dark) {\n")
	for _, light := range []color.RGBA{White, Ink, Grey, Rule, Light, Medium, Dark} {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&style, "[style*=\"%s:%s\"] { %[1]s: %[3]s !important }\n", property, hex(light), hex(onDark[light]))
		}
	}
	style.WriteString("}</style>\n<g ")
	return strings.Replace(svg, "<g ", style.String(), 1)
}

// hex returns a color as vgsvg writes it.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
