package redissonyaml

import (
	"os"
	"regexp"
	"strings"
)

// variable matches ${NAME} and ${NAME:-default}, as Redisson does.
var variable = regexp.MustCompile(`\$\{([\w.]+(:-.+?)?)\}`)

// lineBreak matches what YAML counts as the end of a line.
var lineBreak = regexp.MustCompile(`\r\n|[\r\n\x{85}\x{2028}\x{2029}]`)

// substituted is a text with its variables replaced.
type substituted struct {
	text string
	// source has, for each line of text, the number of the line in the file that it comes from. A
	// value may have several lines.
	source []int
	unset  map[string]bool // the variables that stay as they are
}

// substitute replaces variables by environment variables, or by their defaults. A variable without
// either stays as it is: it may stand in a comment.
func substitute(file string) substituted {
	var text strings.Builder
	s := substituted{unset: make(map[string]bool)}
	for i, line := range splitLines(file) {
		replaced := variable.ReplaceAllStringFunc(line, func(found string) string {
			parts := strings.Split(found[len("${"):len(found)-len("}")], ":-")
			if value, ok := os.LookupEnv(parts[0]); ok {
				return value
			}
			if len(parts) == 2 {
				return parts[1]
			}
			s.unset[found] = true
			return found
		})
		text.WriteString(replaced)
		for range splitLines(replaced) {
			s.source = append(s.source, i+1)
		}
	}
	s.text = text.String()
	return s
}

// splitLines returns the lines of a text with their ends.
func splitLines(text string) []string {
	var lines []string
	begin := 0
	for _, found := range lineBreak.FindAllStringIndex(text, -1) {
		lines = append(lines, text[begin:found[1]])
		begin = found[1]
	}
	if begin < len(text) {
		lines = append(lines, text[begin:])
	}
	return lines
}

// line returns the line of the file that a line of the text comes from. The end of a text may count
// as a line of its own.
func (s substituted) line(n int) int {
	return s.source[min(n, len(s.source))-1]
}
