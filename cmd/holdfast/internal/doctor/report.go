package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Lines prints findings to w, one a line, and before them a line that sums them up. Checks that
// this user may not make are one line. Colours are for terminals.
func Lines(w io.Writer, colours bool, all []Finding) {
	paint := map[State]string{OK: "\x1b[32m", Unknown: "\x1b[33m", Warning: "\x1b[33m",
		Error: "\x1b[31m"}
	for _, f := range append([]Finding{summary(all)}, merged(all)...) {
		state := fmt.Sprintf("%-8s", f.State)
		if colours {
			state = paint[f.State] + state + "\x1b[0m"
		}
		text := f.Text
		if f.Node != "" {
			text = f.Node + " " + text
		}
		if f.Advice != "" {
			text += "; " + f.Advice
		}
		fmt.Fprintf(w, "%s%-13s%s\n", state, f.Check, text)
	}
}

// summary counts findings, and names the checks that are not ok.
func summary(all []Finding) Finding {
	worst := OK
	for _, f := range all {
		worst = max(worst, f.State)
	}
	var parts []string
	for _, s := range []struct {
		state State
		what  string
	}{{Error, "errors"}, {Warning, "warnings"}, {Unknown, "failed checks"}} {
		if list := names(all, s.state); len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d (%s)", s.what, len(list), strings.Join(list, ", ")))
		}
	}
	if len(parts) == 0 {
		return ok("all %d checks passed", len(names(all, OK))).named("summary")
	}
	return Finding{State: worst, Check: "summary", Text: strings.Join(parts, ", ")}
}

// names returns the checks with findings of that state, each once.
func names(all []Finding, s State) (names []string) {
	for _, f := range all {
		if f.State == s && !slices.Contains(names, f.Check) {
			names = append(names, f.Check)
		}
	}
	return names
}

// merged returns the findings with one instead of all of those that this user may not ask for.
func merged(all []Finding) (merged []Finding) {
	var denied []Finding
	var grants []string
	for _, f := range all {
		if f.denied {
			denied = append(denied, f)
		}
		if f.grant != "" && !slices.Contains(grants, f.grant) {
			grants = append(grants, f.grant)
		}
	}
	if len(denied) < 2 {
		return all
	}
	grants = append(grants[:len(grants):len(grants)], "to this user")
	if len(grants) == 1 {
		grants = []string{"more rights to this user"} // Redis 6 does not name them
	}
	checks := names(denied, Unknown)
	one := Finding{State: Unknown, Check: "rights", Text: fmt.Sprintf("%d checks failed, because "+
		"this user lacks permissions (%s)", len(checks), strings.Join(checks, ", ")),
		Advice: "grant " + strings.Join(grants, " ") + ", or check by hand what holdfast doctor --json " +
			"lists"}
	for _, f := range all {
		switch {
		case !f.denied:
			merged = append(merged, f)
		case one.Text != "":
			merged = append(merged, one)
			one.Text = ""
		}
	}
	return merged
}

// JSON returns a function that prints findings to w, one object a line.
func JSON(w io.Writer) func(Finding) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return func(f Finding) { _ = encoder.Encode(f) } // who closed w wants no more
}
