// Package report is what the benchmark found: figures of contestants, and whether goals were met, as text, JSON and plots.
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
	Name     string       `json:"name"`
	Setting  string       `json:"setting"`
	Part     contest.Part `json:"part"`
	Rounds   []Figures    `json:"rounds"`
	Problems []string     `json:"problems,omitempty"` // lost updates first: then its figures count for nothing
	Broken   bool         `json:"broken,omitempty"`
	Notes    []string     `json:"notes,omitempty"` // why it has a dash somewhere, though nothing went wrong
}

// Figure is the median of the rounds; NaN if no round has it.
func (r *Row) Figure(key string) float64 {
	var values []float64
	for _, round := range r.Rounds {
		if v, ok := round[key]; ok {
			values = append(values, v)
		}
	}
	return measure.Median(values)
}

// Problem notes what went wrong, once.
func (r *Row) Problem(text string) {
	if !slices.Contains(r.Problems, text) {
		r.Problems = append(r.Problems, text)
	}
}

// Note says why something was not measured, once.
func (r *Row) Note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// Break notes that the lock let two in, so that no figure of it counts.
func (r *Row) Break(how string) {
	r.Broken = true
	r.Problem(how)
}

// Column is what is shown of each row.
type Column struct {
	Key   string `json:"key"`
	Head  string `json:"head"`
	Unit  Unit   `json:"unit"`
	Ratio bool   `json:"ratio,omitempty"` // also as a ratio to the floor
}

// Goal is what this library is to achieve in a scenario.
type Goal struct {
	Text string  `json:"goal"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"`
	Most bool    `json:"most"` // Want is the most it may be; else the least
	Unit Unit    `json:"unit"`
}

// Met tells whether it was achieved. What was not measured is not met.
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
	Jain  bool     `json:"jain,omitempty"` // beside each name how fair it was
}

// Table is one scenario.
type Table struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title"`
	About    string   `json:"about"`
	Floor    string   `json:"floor,omitempty"` // the row that ratios are to
	Columns  []Column `json:"columns"`
	Rows     []*Row   `json:"rows"`
	Goals    []Goal   `json:"goals,omitempty"`
	Plots    []Plot   `json:"-"`
}

// Row returns the row of that name, and adds it if it is not there.
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

// Figure is the median of a row's rounds; NaN if there is no such row, or its lock let two in.
func (t *Table) Figure(name, key string) float64 {
	r := t.row(name)
	if r == nil || r.Broken {
		return math.NaN()
	}
	return r.Figure(key)
}

// Ratio is the median of a figure's ratios to another row's in the same round: noise that lasts longer than a round is the same
// for both. It is NaN where one of them has none.
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

// Best is the rival with the highest figure of those that are sound.
func (t *Table) Best(key string, sound func(*Row) bool) string {
	best, most := "", math.Inf(-1)
	for _, r := range t.Rows {
		if v := r.Figure(key); r.Part == contest.Rival && !r.Broken && sound(r) && v > most {
			best, most = r.Name, v
		}
	}
	return best
}

// AtMost adds a goal, and so does AtLeast.
func (t *Table) AtMost(text string, got, want float64, u Unit) {
	t.Goals = append(t.Goals, Goal{Text: text, Got: got, Want: want, Most: true, Unit: u})
}

// AtLeast adds a goal.
func (t *Table) AtLeast(text string, got, want float64, u Unit) {
	t.Goals = append(t.Goals, Goal{Text: text, Got: got, Want: want, Unit: u})
}

// Text is the table as Markdown that can be read in a terminal.
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

// GoalGrid lists the goals of tables.
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

// Unmet counts the goals that were not met.
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

// Settings lists the settings of all contestants of tables.
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
