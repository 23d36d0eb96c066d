package view

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/locks"
)

// header names the columns. Only those of text shrink, the others are numbers.
var header = row{"NAME", "KIND", "HOLDER", "COUNT", "TTL", "WAITERS"}

const (
	nameColumn   = 0
	holderColumn = 2
	firstNumber  = 3 // from here on columns are right-aligned
	shrinkTo     = 8 // the least width of a name and of a holder
	gap          = "  "
)

// row is the text of one lock, or the header.
type row [6]string

// Table returns a header and one line for each lock, in the same order, no longer than width
// columns; 0 is unlimited. If they do not fit, names and holders are cut, the longest first.
func Table(all []locks.Lock, width int) []string {
	rows := make([]row, 0, 1+len(all))
	rows = append(rows, header)
	for _, l := range all {
		rows = append(rows, newRow(l))
	}
	widths := columnWidths(rows, width)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = cut(r.line(widths), width)
	}
	return lines
}

func newRow(l locks.Lock) row {
	r := row{Printable(l.Name), string(l.Kind), "-", "-", "-", strconv.Itoa(l.Waiting())}
	if len(l.Holders) > 0 {
		r[holderColumn] = Holders(l)
		r[firstNumber] = strconv.Itoa(levels(l))
		r[firstNumber+1] = TTL(l.TTL)
	}
	return r
}

// columnWidths returns how wide the columns are, so that a line has width columns if that is
// possible.
func columnWidths(rows []row, width int) (widths [len(header)]int) {
	total := len(gap) * (len(widths) - 1)
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(r[i]))
		}
		total += widths[i]
	}
	for ; width > 0 && total > width; total-- {
		widest := &widths[nameColumn]
		if widths[holderColumn] > *widest {
			widest = &widths[holderColumn]
		}
		if *widest <= shrinkTo {
			break
		}
		*widest--
	}
	return widths
}

func (r row) line(widths [len(header)]int) string {
	var b strings.Builder
	for i, text := range r {
		if i > 0 {
			b.WriteString(gap)
		}
		text = ansi.Truncate(text, widths[i], "…")
		blanks := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
		if i >= firstNumber {
			text = blanks + text
		} else {
			text += blanks
		}
		b.WriteString(text)
	}
	return b.String()
}
