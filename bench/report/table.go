// Package report presents what the benchmark found as text, JSON and plots: figures of contestants,
// and whether goals were met.
package report

import (
	"maps"
	"math"
	"slices"
	"strings"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
)

// Figures are what one round found of one contestant.
type Figures map[string]float64

// Row is a contestant in a scenario.
type Row struct {
	Name    string       `json:"name"`
	Setting string       `json:"setting"`
	Part    contest.Part `json:"part"`
	Rounds  []Figures    `json:"rounds"`
	// lost updates first: then its figures count for nothing
	Problems []string `json:"problems,omitempty"`
	Broken   bool     `json:"broken,omitempty"`
	// why a figure is missing although nothing went wrong
	Notes []string `json:"notes,omitempty"`
}

// Figure returns the median of the rounds; NaN if no round has the figure.
func (r *Row) Figure(key string) float64 {
	var values []float64
	for _, round := range r.Rounds {
		if v, ok := round[key]; ok {
			values = append(values, v)
		}
	}
	return measure.Median(values)
}

// Problem records what went wrong, once.
func (r *Row) Problem(text string) {
	if !slices.Contains(r.Problems, text) {
		r.Problems = append(r.Problems, text)
	}
}

// Note records why something was not measured, once.
func (r *Row) Note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// Break records that the lock had two holders at once, so that none of its figures counts.
func (r *Row) Break(how string) {
	r.Broken = true
	r.Problem(how)
}

// Column is a figure shown of each row.
type Column struct {
	Key   string `json:"key"`
	Head  string `json:"head"`
	Unit  Unit   `json:"unit"`
	Ratio bool   `json:"ratio,omitempty"` // also as a ratio to the floor
}

// Goal is what this library should achieve in a scenario.
type Goal struct {
	Text string  `json:"goal"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"`
	Most bool    `json:"most"` // Want is the most allowed; else the least
	Unit Unit    `json:"unit"`
}

// Met reports whether the goal was met. What was not measured is not met.
func (g Goal) Met() bool {
	if g.Most {
		return g.Got <= g.Want
	}
	return g.Got >= g.Want
}

// Plot is a bar chart of a table: one bar for each row, or for each row and key.
type Plot struct {
	File  string   `json:"file"`
	Title string   `json:"title"`
	Keys  []string `json:"keys"`
	Label string   `json:"label"` // of the axis
	Log   bool     `json:"log,omitempty"`
	Jain  bool     `json:"jain,omitempty"` // show Jain's index beside each name
}

// Table is one scenario.
type Table struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title"`
	About    string   `json:"about"`
	Floor    string   `json:"floor,omitempty"` // the row that ratios refer to
	Columns  []Column `json:"columns"`
	Rows     []*Row   `json:"rows"`
	Goals    []Goal   `json:"goals,omitempty"`
	Plots    []Plot   `json:"-"`
}

// Row returns the row of a contestant, and adds it if it is missing.
func (t *Table) Row(c contest.Contestant) *Row {
	if r := t.row(c.Name); r != nil {
		return r
	}
	t.Rows = append(t.Rows, &Row{Name: c.Name, Setting: c.Setting, Part: c.Part})
	return t.Rows[len(t.Rows)-1]
}

func (t *Table) row(name string) *Row {
	for _, r := range t.Rows {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Figure returns the median of a row's rounds; NaN if there is no such row, or its lock had two
// holders at once.
func (t *Table) Figure(name, key string) float64 {
	r := t.row(name)
	if r == nil || r.Broken {
		return math.NaN()
	}
	return r.Figure(key)
}

// Ratio returns the median of the ratios of a figure to another row's in the same round: noise that
// lasts longer than a round affects both. It is NaN if one of them has none.
func (t *Table) Ratio(name, to, key string) float64 {
	mine, theirs := t.row(name), t.row(to)
	if mine == nil || theirs == nil || mine.Broken || theirs.Broken {
		return math.NaN()
	}
	var ratios []float64
	for i := range min(len(mine.Rounds), len(theirs.Rounds)) {
		a, ok := mine.Rounds[i][key]
		b, also := theirs.Rounds[i][key]
		if ok && also && b != 0 {
			ratios = append(ratios, a/b)
		}
	}
	return measure.Median(ratios)
}

// Best returns the other library with the highest figure among the rows that are sound.
func (t *Table) Best(key string, sound func(*Row) bool) string {
	best, most := "", math.Inf(-1)
	for _, r := range t.Rows {
		if v := r.Figure(key); r.Part == contest.Other && !r.Broken && sound(r) && v > most {
			best, most = r.Name, v
		}
	}
	return best
}

// AtMost adds a goal that is met by a figure of at most want.
func (t *Table) AtMost(text string, got, want float64, u Unit) {
	t.Goals = append(t.Goals, Goal{Text: text, Got: got, Want: want, Most: true, Unit: u})
}

// AtLeast adds a goal that is met by a figure of at least want.
func (t *Table) AtLeast(text string, got, want float64, u Unit) {
	t.Goals = append(t.Goals, Goal{Text: text, Got: got, Want: want, Unit: u})
}

// Text returns the table as Markdown that can be read in a terminal.
func (t *Table) Text() string {
	var out strings.Builder
	out.WriteString("### " + t.Title + " (`" + t.Scenario + "`)\n\n" + t.About + "\n\n")
	grid := [][]string{{"contestant"}}
	for _, c := range t.Columns {
		grid[0] = append(grid[0], c.Head)
		if c.Ratio {
			grid[0] = append(grid[0], "x floor")
		}
	}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for _, c := range t.Columns {
			cell := c.Unit.Format(r.Figure(c.Key))
			if r.Broken {
				cell = "BROKEN"
			}
			line = append(line, cell)
			if c.Ratio {
				line = append(line, Ratio.Format(t.Ratio(r.Name, t.Floor, c.Key)))
			}
		}
		grid = append(grid, line)
	}
	out.WriteString(Grid(grid, func(column int) bool { return column > 0 }))
	for _, r := range t.Rows {
		if below := slices.Concat(r.Problems, r.Notes); len(below) > 0 {
			out.WriteString("\n" + r.Name + ": " + strings.Join(below, "; ") + ".\n")
		}
	}
	if len(t.Goals) > 0 {
		out.WriteString("\n" + GoalGrid([]*Table{t}))
	}
	return out.String()
}

// GoalGrid returns a table of the goals of tables.
func GoalGrid(tables []*Table) string {
	grid := [][]string{{"scenario", "goal", "measured", "met"}}
	for _, t := range tables {
		for _, g := range t.Goals {
			met := "no"
			if g.Met() {
				met = "yes"
			}
			grid = append(grid, []string{t.Scenario, g.Text, g.Unit.Format(g.Got), met})
		}
	}
	return Grid(grid, func(column int) bool { return column == 2 })
}

// Unmet returns how many goals were not met, and how many there are.
func Unmet(tables []*Table) (unmet, all int) {
	for _, t := range tables {
		for _, g := range t.Goals {
			all++
			if !g.Met() {
				unmet++
			}
		}
	}
	return unmet, all
}

// Settings returns a table of the settings of all contestants of tables.
func Settings(tables []*Table) string {
	settings := map[string]string{}
	for _, t := range tables {
		for _, r := range t.Rows {
			settings[r.Name] = r.Setting
		}
	}
	grid := [][]string{{"contestant", "setting"}}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		grid = append(grid, []string{name, settings[name]})
	}
	return Grid(grid, func(int) bool { return false })
}
