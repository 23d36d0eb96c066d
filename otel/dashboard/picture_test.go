package dashboard

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shown has the titles of the panels in a picture, from the top.
var shown = []string{"Calls that wait", "Time to acquire", "Hand-overs", "Lease used up, p99",
	"Renewals that failed", "Losses by reason", "Nodes that fail"}

// The sizes of a picture, in pixels. Strips are stacked, on the same axis of time.
const (
	wide, leftMost, rightMost, top  = 960, 56, 740, 70
	stripHeight, stripGap, alertRow = 76, 30, 15
)

var (
	colors = []string{"#1f6fb4", "#e08a2c", "#3a9a4b", "#c43c39", "#8a63b8", "#7a5a48", "#d670ad",
		"#666666"}
	stripes = []string{"#fdeccf", "#e3ecf7"} // faults
)

// picture is an SVG that is being drawn.
type picture struct {
	strings.Builder
	run timeRange
	y   float64 // the top of the strip that is drawn
}

func (p *picture) add(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

func (p *picture) text(x, y float64, class, text string) {
	p.add(`<text x="%.0f" y="%.1f" class="%s">%s</text>`, x, y, class, html.EscapeString(text))
}

// x returns where a time is.
func (p *picture) x(at time.Time) float64 {
	whole := p.run.step * time.Duration(p.run.steps)
	return leftMost + float64(at.Sub(p.run.start))/float64(whole)*(rightMost-leftMost)
}

// draw draws the results of the dashboard's queries over a run, with the faults as stripes.
func draw(t *testing.T, path string, from *prometheus, run timeRange, faults []episode) {
	t.Helper()
	d := readDashboard(t)
	rules := slices.Sorted(maps.Keys(alerts(t)))
	p := &picture{run: run, y: top}
	bottom := top + float64(len(shown)*(stripHeight+stripGap)+len(rules)*alertRow)
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%[1]d">`, wide,
		bottom+34)
	p.add(`<style>text{font:11px sans-serif;fill:#333}.h{font-weight:bold;font-size:12px}` +
		`.r{text-anchor:end;fill:#666}.c{text-anchor:middle}path{fill:none;stroke-width:1.3}` +
		`line{stroke:#ccc;stroke-width:.7}</style>`)
	p.add(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	for i, f := range faults {
		left, right := p.x(f.start), p.x(f.end)
		p.add(`<rect x="%.1f" y="%d" width="%.1f" height="%.0f" fill="%s"/>`, left, top-20,
			right-left, bottom-top+24, stripes[i%len(stripes)])
		for line, text := range strings.Split(f.name, "\n") {
			p.text((left+right)/2, float64(top-50+13*line), "c", text)
		}
	}
	for _, title := range shown {
		i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == title })
		require.NotEqual(t, -1, i, title)
		p.strip(t, from, d.Panels[i])
	}
	p.text(leftMost, p.y-5, "h", "Alerts, with seconds instead of minutes")
	for i, rule := range rules {
		y := p.y + float64(i*alertRow)
		p.text(rightMost+12, y+11, "", rule)
		p.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%[3]f"/>`, leftMost, rightMost, y+7)
		for _, s := range from.queryRange(t,
			fmt.Sprintf(`max(ALERTS{alertname=%q, alertstate="firing"})`, rule), run) {
			for at := 0; at < len(s.points); at++ {
				if began := at; !math.IsNaN(s.points[at]) {
					for at < len(s.points) && !math.IsNaN(s.points[at]) {
						at++
					}
					left, right := p.x(run.at(began)), min(p.x(run.at(at)), rightMost)
					p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="9" fill="#c43c39"/>`, left, y+2.5,
						right-left)
				}
			}
		}
	}
	whole := run.step * time.Duration(run.steps)
	for at := time.Duration(0); at <= whole; at += max(whole/10, time.Minute).Truncate(time.Minute) {
		p.text(p.x(run.start.Add(at)), bottom+20, "c", fmt.Sprintf("%.0f min", at.Minutes()))
	}
	p.add(`</svg>`)
	require.NoError(t, os.WriteFile(path, []byte(p.String()), 0o644))
}

// strip draws the series of a panel, and names them at the right. Only durations are logarithmic.
func (p *picture) strip(t *testing.T, from *prometheus, of panel) {
	t.Helper()
	unit := of.FieldConfig.Defaults.Unit
	type line struct {
		name   string
		points []float64
		most   float64
	}
	var lines []line
	least, most := math.Inf(1), 0.0 // of all
	for _, target := range of.Targets {
		expr := query(target.Expr, p.run.step*time.Duration(p.run.steps))
		for _, s := range from.queryRange(t, expr, p.run) {
			l := line{name: s.legend(target.LegendFormat), points: s.points}
			for _, v := range s.points {
				if v > 0 { // not NaN
					l.most, least = max(l.most, v), min(least, v)
				}
			}
			if l.most > 0 {
				lines = append(lines, l)
				most = max(most, l.most)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.most, a.most) })
	if unit != "s" && unit != "percentunit" {
		lines = slices.DeleteFunc(lines, func(l line) bool { return l.most < most/50 })
	}
	lines = lines[:min(len(lines), len(colors))]

	most = rounded(most)
	scale, ticks := func(v float64) float64 { return v / most }, []float64{0, most / 2, most}
	switch unit {
	case "percentunit":
		scale, ticks = func(v float64) float64 { return v }, []float64{0, 0.5, 0.9}
	case "s":
		low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
		scale = func(v float64) float64 {
			return (math.Log10(max(v, math.Pow(10, low))) - low) / (high - low)
		}
		ticks = nil
		for e := low; e <= high; e++ {
			ticks = append(ticks, math.Pow(10, e))
		}
	}
	height := func(v float64) float64 { return p.y + stripHeight*(1-scale(v)) }
	title := of.Title
	if strings.Contains(of.Targets[0].Expr, "increase(") {
		title += ", in 10 s"
	}
	p.text(leftMost, p.y-5, "h", title)
	for _, v := range ticks {
		p.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f"/>`, leftMost, rightMost, height(v))
		p.text(leftMost-5, height(v)+4, "r", label(v, unit))
	}
	for i, l := range lines {
		var path strings.Builder
		move := "M"
		for at, v := range l.points {
			if math.IsNaN(v) {
				move = "M"
				continue
			}
			fmt.Fprintf(&path, "%s%.0f %.1f", move, p.x(p.run.at(at)),
				height(v))
			move = "L"
		}
		p.add(`<path d="%s" stroke="%s"/>`, path.String(), colors[i])
		y := p.y + 9 + 11*float64(i)
		p.add(`<rect x="%d" y="%.1f" width="10" height="3" fill="%s"/>`, rightMost+12, y-5, colors[i])
		p.text(rightMost+26, y, "", l.name)
	}
	p.y += stripHeight + stripGap
}

// label writes a value on an axis.
func label(v float64, unit string) string {
	switch {
	case unit == "percentunit":
		return fmt.Sprintf("%.0f %%", v*100)
	case unit == "s" && v < 1:
		return fmt.Sprintf("%.4g ms", v*1000)
	case unit == "s":
		return fmt.Sprintf("%.4g s", v)
	}
	return fmt.Sprintf("%.4g%s", v, strings.TrimPrefix(strings.TrimPrefix(unit, "short"), "suffix:"))
}

// rounded returns the next number, no smaller than v, that is easy to read on an axis.
func rounded(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, times := range []float64{1, 2, 4, 6, 8} {
		if v <= times*decade {
			return times * decade
		}
	}
	return 10 * decade
}
