package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
)

// Result is a whole run.
type Result struct {
	Machine Machine  `json:"machine"`
	Tables  []*Table `json:"tables"`
	// what its clients ran on, or why they are missing; empty if not asked for
	Java string `json:"java,omitempty"`
}

// Text returns everything as Markdown.
func (r *Result) Text() string {
	var out strings.Builder
	out.WriteString(r.Machine.Text() + ".\n\n")
	if r.Java != "" {
		out.WriteString(r.Java + ".\n\n")
	}
	for _, t := range r.Tables {
		out.WriteString(t.Text() + "\n")
	}
	out.WriteString(r.Summary())
	return out.String()
}

// Summary returns the goals only.
func (r *Result) Summary() string {
	unmet, all := Unmet(r.Tables)
	return fmt.Sprintf("### Goals: %d of %d met\n\n%s", all-unmet, all, GoalGrid(r.Tables))
}

// Markdown returns the text for a page: machine, tables, goals and settings.
func (r *Result) Markdown() string {
	return r.Text() + "\n### Settings\n\n" + Settings(r.Tables)
}

// WriteJSON writes the figures of all rounds to a file.
func (r *Result) WriteJSON(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

// MarshalJSON writes a goal that was not measured as null: JSON has no NaN.
func (g Goal) MarshalJSON() ([]byte, error) {
	var got *float64
	if !math.IsNaN(g.Got) && !math.IsInf(g.Got, 0) {
		got = &g.Got
	}
	return json.Marshal(struct {
		Text string   `json:"goal"`
		Got  *float64 `json:"got"`
		Want float64  `json:"want"`
		Most bool     `json:"most"`
		Unit Unit     `json:"unit"`
		Met  bool     `json:"met"`
	}{g.Text, got, g.Want, g.Most, g.Unit, g.Met()})
}
