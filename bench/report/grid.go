package report

import (
	"strings"
	"unicode/utf8"
)

// Grid returns a Markdown table with aligned columns. The first line is the head. Columns for which
// right is true are figures. Without lines it is empty.
func Grid(lines [][]string, right func(column int) bool) string {
	if len(lines) == 0 {
		return ""
	}
	widths := make([]int, len(lines[0]))
	for i := range widths {
		for _, line := range lines {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]), 3)
		}
	}
	var out strings.Builder
	write := func(line []string) {
		out.WriteString("|")
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right(i) {
				out.WriteString(" " + space + cell + " |")
			} else {
				out.WriteString(" " + cell + space + " |")
			}
		}
		out.WriteString("\n")
	}
	write(lines[0])
	rule := make([]string, len(widths))
	for i := range rule {
		rule[i] = strings.Repeat("-", widths[i])
		if right(i) {
			rule[i] = rule[i][1:] + ":"
		}
	}
	write(rule)
	for _, line := range lines[1:] {
		write(line)
	}
	return out.String()
}
