package redissonyaml

import (
	"fmt"
	"strings"
)

// Line is a finding about a line of a file.
type Line struct {
	Number int    // of the line; 0 if the file lacks it, or in a file of properties
	Key    string // the key with its section, as in "singleServerConfig.retryAttempts"
	Text   string // what is the matter, and what to do
}

// String returns the whole finding, as in "line 3: singleServerConfig.address: …".
func (l Line) String() string {
	var s strings.Builder
	if l.Number > 0 {
		fmt.Fprintf(&s, "line %d: ", l.Number)
	}
	if l.Key != "" {
		s.WriteString(l.Key + ": ")
	}
	s.WriteString(l.Text)
	return s.String()
}

// Error reports all lines that Load rejects.
type Error struct {
	Lines []Line // in the order of the file; never empty
}

// Error returns a text with a line for each rejected line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Lines))
	for i, line := range e.Lines {
		lines[i] = line.String()
	}
	return "redissonyaml: " + strings.Join(lines, "\n\t")
}
