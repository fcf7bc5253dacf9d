package figure

import (
	"errors"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bar is a bar of a chart, with its name to the left and its label to the right.
type Bar struct {
	Name, Label string
	Value       float64
	Ours        bool // it is drawn dark
}

const barHeight, barStep = 11, 16

// Bars writes a chart of horizontal bars, the first at the top.
func Bars(path, title, subtitle string, bars []Bar) error {
	p := New()
	p.HideAxes()
	labels := plotter.XYLabels{XYs: make(plotter.XYs, len(bars)), Labels: make([]string, len(bars))}
	colored := map[bool]plotter.Values{true: make(plotter.Values, len(bars)), false: make(plotter.Values, len(bars))}
	for i, b := range bars {
		at := len(bars) - 1 - i // the axis points upwards
		labels.XYs[at], labels.Labels[at] = plotter.XY{X: b.Value, Y: float64(at)}, b.Label
		colored[b.Ours][at] = b.Value
	}
	err := errors.Join(addBars(p, colored[true], Dark), addBars(p, colored[false], Light), addLabels(p, labels))
	if err != nil {
		return err
	}
	p.X.Min = 0
	return Save(path, title, subtitle, vg.Length(header+len(bars)*barStep+margin), func(c draw.Canvas) { paintBars(c, p, bars) })
}

// paintBars draws the bars with their names in a column to the left. The column is a fifth wider
// than needed, because a reader's font may be wider than the one measured here.
func paintBars(c draw.Canvas, p *plot.Plot, bars []Bar) {
	style, column := Style(8.5, Ink), vg.Length(0)
	for _, b := range bars {
		column = max(column, style.Width(b.Name)*1.2)
	}
	right := draw.Crop(c, column, 0, 0, 0)
	p.Draw(right)
	data := p.DataCanvas(right)
	_, y := p.Transforms(&data)
	for i, b := range bars {
		c.FillText(style, vg.Point{X: c.Min.X, Y: y(float64(len(bars)-1-i)) - 3}, b.Name)
	}
}

// addBars adds the bars of one color. Bars of other colors have the value 0 here, so they are
// invisible.
func addBars(p *plot.Plot, values plotter.Values, fill color.Color) error {
	bars, err := plotter.NewBarChart(values, barHeight)
	if err != nil {
		return err
	}
	bars.Horizontal, bars.LineStyle.Width, bars.Color = true, 0, fill
	p.Add(bars)
	return nil
}

func addLabels(p *plot.Plot, labels plotter.XYLabels) error {
	all, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	all.Offset = vg.Point{X: 5, Y: -3}
	for i := range all.TextStyle {
		all.TextStyle[i] = Style(8.5, Grey)
	}
	p.Add(all)
	return nil
}
