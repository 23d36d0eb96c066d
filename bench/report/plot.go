package report

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"holdfast/bench/contest"
)

// Plot draws the plots of all tables as SVG into a directory, which it makes if needed. What was
// not measured has no bar, and a plot without bars is not drawn.
func (r *Result) Plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range r.Tables {
		for _, p := range t.Plots {
			if bars := t.bars(p); len(bars) > 0 {
				if err := draws(bars, p, r.Machine, filepath.Join(dir, p.File+".svg")); err != nil {
					return fmt.Errorf("plot %s: %w", p.File, err)
				}
			}
		}
	}
	return nil
}

// bar is one contestant, with a value for each key.
type bar struct {
	name   string
	part   contest.Part
	values []float64 // NaN if it was not measured
}

func (t *Table) bars(p Plot) []bar {
	var bars []bar
	for _, r := range t.Rows {
		b := bar{name: r.Name, part: r.Part}
		if jain := t.Figure(r.Name, "jain"); p.Jain && !math.IsNaN(jain) {
			b.name += fmt.Sprintf(" (%.2f)", jain)
		}
		measured := false
		for _, key := range p.Keys {
			v := t.Ratio(r.Name, t.Floor, key)
			measured = measured || v > 0
			b.values = append(b.values, v)
		}
		if measured {
			bars = append(bars, b)
		}
	}
	return bars
}

var colors = map[contest.Part]color.RGBA{
	contest.Floor: {0x9e, 0x9e, 0x9e, 0xff},
	contest.Ours:  {0x1f, 0x6f, 0xb4, 0xff},
	contest.Other: {0xe0, 0x8a, 0x2c, 0xff},
}

// draws draws horizontal bars from the top, with their values beside them.
func draws(bars []bar, of Plot, m Machine, path string) error {
	p := plot.New()
	p.Title.Text = of.Title
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text = strings.Join([]string{of.Label, m.caption()}, "\n")
	p.X.Label.TextStyle.Font.Size = vg.Points(9)
	p.Y.Tick.Length, p.Y.Width = 0, 0
	most, least := 1.0, 1.0
	var ticks []plot.Tick
	for i, b := range bars {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: b.name})
		for _, v := range b.values {
			if v > 0 {
				most, least = max(most, v), min(least, v)
			}
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -float64(len(bars))+0.4, 0.6
	if of.Log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.X.Min, p.X.Max = min(0.5, least/2), most*3
	} else {
		p.X.Min, p.X.Max = 0, most*1.15
	}
	p.Add(barPlotter{bars})
	height := vg.Points(122 + float64(len(bars))*(10+13*float64(len(of.Keys))))
	canvas := vgsvg.New(vg.Points(620), height)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(12), -vg.Points(8), vg.Points(6), -vg.Points(6)))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// caption returns the machine in the words of a plot.
func (m Machine) caption() string {
	return fmt.Sprintf("%s; medians of %d rounds\n%d cores (%s), Redis %s on the same machine, %s",
		m.Command, m.Rounds, m.Cores, m.Processor, m.Redis, m.Go)
}

// barPlotter draws the bars. Those of gonum begin at 0, which a logarithmic scale does not have.
type barPlotter struct{ bars []bar }

// Plot draws each bar from the left, and a line where the floor is.
func (b barPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	for i, bar := range b.bars {
		thick := 0.8 / float64(len(bar.values))
		for k, v := range bar.values {
			if !(v > 0) {
				continue
			}
			top := -float64(i) + 0.4 - thick*float64(k)
			fill := colors[bar.part]
			fill.A = uint8(0xff - 0x50*k) // later keys are paler
			fill.R, fill.G = faded(fill.R, fill.A), faded(fill.G, fill.A)
			fill.B = faded(fill.B, fill.A)
			fill.A = 0xff
			c.FillPolygon(fill, []vg.Point{
				{X: x(p.X.Min), Y: y(top)}, {X: x(v), Y: y(top)},
				{X: x(v), Y: y(top - thick*0.9)}, {X: x(p.X.Min), Y: y(top - thick*0.9)},
			})
			c.FillText(style, vg.Point{X: x(v) + vg.Points(3), Y: y(top - thick*0.45)},
				strings.TrimSuffix(Ratio.Format(v), " x"))
		}
	}
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x40}, Width: vg.Points(0.6),
		Dashes: []vg.Length{vg.Points(3), vg.Points(3)}},
		x(1), y(p.Y.Min), x(1), y(p.Y.Max))
}

// faded returns a colour component on white with the given opacity.
func faded(component, opacity uint8) uint8 {
	return uint8((int(component)*int(opacity) + 0xff*(0xff-int(opacity))) / 0xff)
}
