package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/printable"
)

// The styles. Without colours, the characters in front of the rows tell the same.
var (
	bold    = lipgloss.NewStyle().Bold(true)
	dim     = lipgloss.NewStyle().Faint(true)
	failure = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	ask     = lipgloss.NewStyle().Foreground(lipgloss.Yellow).Bold(true)
	cursor  = lipgloss.NewStyle().Reverse(true)
	changes = map[change]lipgloss.Style{
		same:    lipgloss.NewStyle(),
		added:   lipgloss.NewStyle().Foreground(lipgloss.Green),
		gone:    lipgloss.NewStyle().Foreground(lipgloss.Red),
		changed: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	}
)

// around is the number of lines around the rows: two above, the names of the columns, one below.
const around = 4

// space returns how many rows there is room for.
func (m model) space() int { return max(1, m.height-around) }

// View returns the screen.
func (m model) View() tea.View {
	lines := []string{bold.Render(m.cut(m.heading())), m.second()}
	if m.mode == details {
		lines = append(lines, m.inspection()...)
	} else {
		lines = append(lines, m.body()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, min(len(lines), m.height-1))], m.footer())
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// heading says of which server and of when the table is.
func (m model) heading() string {
	text := "holdfast top  " + m.options.Server
	if m.options.Pattern != "" {
		text += "  " + printable.Text(m.options.Pattern)
	}
	if m.rows == nil {
		return text
	}
	number, waiters := 0, 0
	for _, r := range m.rows {
		if r.change != gone {
			number++
			waiters += r.Waiting()
		}
	}
	return fmt.Sprintf("%s  %d locks, %d waiters  %s, in %d ms", text, number, waiters,
		m.found.Format(time.TimeOnly), m.took.Milliseconds())
}

// second returns the line below the heading: what is wrong, or the filter.
func (m model) second() string {
	switch {
	case m.err != nil && m.rows == nil:
		return failure.Render(m.cut("Redis has not replied yet: " + printable.Short(m.err.Error())))
	case m.err != nil:
		return failure.Render(m.cut("last update " + m.found.Format(time.TimeOnly) +
			", no reply since then: " + printable.Short(m.err.Error())))
	case m.mode == typing:
		return m.cut("/" + printable.Text(m.search) + "▏")
	case m.search != "":
		return dim.Render(m.cut("/" + printable.Text(m.search) + "  (esc shows all)"))
	}
	return ""
}

// body returns the table, with the part of it that has the selected row.
func (m model) body() []string {
	shown := m.shown()
	if len(shown) == 0 {
		switch {
		case m.rows == nil:
			return []string{dim.Render("searching for locks…")}
		case m.search != "":
			return []string{dim.Render("no lock matches")}
		}
		return []string{dim.Render("no lock is held")}
	}
	all := make([]locks.Lock, len(shown))
	for i, r := range shown {
		all[i] = r.Lock
	}
	const marks = "   "
	table := view.Table(all, max(1, m.width-len(marks)), time.Now())
	lines := []string{dim.Render(m.cut(marks + table[0]))}
	first := max(0, min(m.at-m.space()/2, len(shown)-m.space()))
	for i := first; i < min(first+m.space(), len(shown)); i++ {
		r := shown[i]
		line := " " + string(r.change) + " " + table[i+1]
		style := changes[r.change]
		if r.Name == m.selected {
			line = ">" + line[1:]
			line += strings.Repeat(" ", max(0, m.width-ansi.StringWidth(line)))
			style = cursor.Inherit(style)
		}
		lines = append(lines, style.Render(m.cut(line)))
	}
	return lines
}

// inspection returns all about the selected lock.
func (m model) inspection() (lines []string) {
	switch {
	case m.detail.err != nil:
		return []string{failure.Render(m.cut(printable.Short(m.detail.err.Error())))}
	case m.detail.at.IsZero():
		return []string{dim.Render("reading the lock…")}
	}
	for line := range strings.Lines(view.Details(m.detail.lock, m.detail.at)) {
		lines = append(lines, m.cut(strings.TrimSuffix(line, "\n")))
	}
	return lines
}

// footer asks, tells, or says which keys there are.
func (m model) footer() string {
	switch {
	case m.mode == asking:
		question := fmt.Sprintf("Unlock %s, %s? (y/n)", printable.Text(m.question.Name),
			view.Line(m.question, 0))
		if ansi.StringWidth(question) > m.width { // the end matters most
			question = "(y/n) " + question
		}
		return ask.Render(m.cut(question))
	case m.message != "":
		return ask.Render(m.cut(m.message))
	case m.mode == details:
		return dim.Render(m.cut("enter back  q quit"))
	case m.mode == typing:
		return dim.Render(m.cut("enter done  esc all"))
	}
	return dim.Render(m.cut("↑↓ select  enter inspect  / filter  u unlock  q quit" +
		"    + new  * another holder  - gone"))
}

// cut makes a line as wide as the terminal at most.
func (m model) cut(line string) string { return ansi.Truncate(line, m.width, "…") }
