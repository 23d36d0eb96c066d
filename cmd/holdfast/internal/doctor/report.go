package doctor

import (
	"encoding/json"
	"fmt"
	"io"
)

// Lines returns a function that prints findings to w, one a line. Colours are for terminals.
func Lines(w io.Writer, colours bool) func(Finding) {
	paint := map[State]string{OK: "\x1b[32m", Unknown: "\x1b[33m", Warning: "\x1b[33m",
		Error: "\x1b[31m"}
	return func(f Finding) {
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

// JSON returns a function that prints findings to w, one object a line.
func JSON(w io.Writer) func(Finding) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return func(f Finding) { _ = encoder.Encode(f) } // who closed w wants no more
}
