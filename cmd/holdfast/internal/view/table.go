package view

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/printable"
)

// header names the columns. Only those of text shrink, the others are numbers. HELD is left out if
// it is not known of any lock.
var header = row{"NAME", "KIND", "HOLDER", "HELD", "COUNT", "TTL", "WAITERS"}

const (
	nameColumn   = 0
	holderColumn = 2
	firstNumber  = 3 // from here on columns are right-aligned
	heldColumn   = 3
	shrinkTo     = 8 // the least width of a name and of a holder
	gap          = "  "
)

// row is the text of one lock, or the header.
type row []string

// Table returns a header and one line for each lock, in the same order, no longer than width
// columns; 0 is unlimited. If they do not fit, names and holders are cut, the longest first.
func Table(all []locks.Lock, width int, now time.Time) []string {
	rows := make([]row, 0, 1+len(all))
	rows = append(rows, slices.Clone(header))
	known := false
	for _, l := range all {
		rows = append(rows, newRow(l, now))
		known = known || !held(l).IsZero()
	}
	for i := range rows {
		if !known {
			rows[i] = slices.Delete(rows[i], heldColumn, heldColumn+1)
		}
	}
	widths := columnWidths(rows, width)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = cut(r.line(widths), width)
	}
	return lines
}

func newRow(l locks.Lock, now time.Time) row {
	r := row{printable.Text(l.Name), string(l.Kind), "-", "-", "-", "-", strconv.Itoa(l.Waiting())}
	if len(l.Holders) > 0 {
		r[holderColumn] = Holders(l)
		r[heldColumn+1] = strconv.Itoa(levels(l))
		r[heldColumn+2] = TTL(l.TTL)
	}
	if since := held(l); !since.IsZero() {
		r[heldColumn] = Since(since, now)
	}
	return r
}

// held returns since when the lock is held, as far as its holders recorded that; zero if none did.
func held(l locks.Lock) (since time.Time) {
	for _, h := range l.Holders {
		if at := h.Client.Held; since.IsZero() || !at.IsZero() && at.Before(since) {
			since = at
		}
	}
	return since
}

// columnWidths returns how wide the columns are, so that a line has width columns if that is
// possible.
func columnWidths(rows []row, width int) (widths []int) {
	widths = make([]int, len(rows[0]))
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

func (r row) line(widths []int) string {
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
