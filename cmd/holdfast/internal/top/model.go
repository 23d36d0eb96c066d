package top

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/printable"
)

// mode is what keys mean.
type mode int

const (
	table   mode = iota
	typing       // of the filter
	asking       // whether to unlock
	details      // of one lock
)

// model is the state of top. It changes only in Update.
type model struct {
	server        asker
	options       Options
	width, height int
	mode          mode

	rows     []row  // of the last scan that succeeded; nil before the first
	search   string // the filter
	selected string // name of a lock
	at       int    // where it was in the table, for when it is no longer there

	found   time.Time     // when the last scan that succeeded began
	took    time.Duration // how long it took
	err     error         // why the last scan failed, or nil
	message string        // what the last unlock did, until a key is pressed

	question locks.Lock // what to unlock
	detail   inspected  // what to show of the selected lock
}

// tick is the time for the next scan.
type tick struct{}

func newModel(s asker, o Options) model { return model{server: s, options: o} }

// Init begins the first scan.
func (m model) Init() tea.Cmd { return m.server.scan }

// Update takes a key, an answer of the server, or the size of the terminal.
func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch a := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = a.Width, a.Height
	case tick:
		return m, m.server.scan
	case scanned:
		m = m.scanned(a)
		next := tea.Tick(m.options.Interval, func(time.Time) tea.Msg { return tick{} })
		if m.mode == details {
			return m, tea.Batch(next, m.inspect())
		}
		return m, next
	case inspected:
		if a.err != nil || a.lock.Name == m.selected {
			m.detail = a
		}
	case unlocked:
		m.message = outcome(a)
	case tea.KeyPressMsg:
		return m.key(a)
	}
	return m, nil
}

// scanned takes the result of a scan. If it failed, the rows stay.
func (m model) scanned(a scanned) model {
	m.err = a.err
	if a.err == nil {
		m.rows = compare(m.rows, a.all)
		if m.rows == nil {
			m.rows = []row{}
		}
		m.found, m.took = a.at, a.took
	}
	return m.move(0)
}

// outcome says what an unlock did.
func outcome(a unlocked) string {
	var changed *locks.ChangedError
	switch {
	case errors.As(a.err, &changed):
		return "not unlocked, because the holder has changed: " + view.Line(changed.Now, 0)
	case a.err != nil:
		return "not unlocked: " + a.err.Error()
	case a.refusal != "":
		return "unlocked, but Redis rejected the message to the waiters, so they notice within 5 s: " +
			a.refusal
	}
	return fmt.Sprintf("unlocked %s, which was %s", printable.Text(a.before.Name),
		view.Line(a.before, 0))
}

// key does what a key means.
func (m model) key(press tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	key := press.String()
	if key == "ctrl+c" {
		return m, tea.Quit
	}
	m.message = ""
	switch m.mode {
	case typing:
		return m.typed(key, press.Text).move(0), nil
	case asking:
		m.mode = table
		if key == "y" || key == "Y" {
			m.message = "unlocking…"
			lock := m.question
			return m, func() tea.Msg { return m.server.unlock(lock) }
		}
		m.message = "not unlocked"
		return m, nil
	case details:
		switch key {
		case "q":
			return m, tea.Quit
		case "enter", "esc":
			m.mode = table
		}
		return m, nil
	case table:
	}
	switch key {
	case "q":
		return m, tea.Quit
	case "up", "k":
		return m.move(-1), nil
	case "down", "j":
		return m.move(1), nil
	case "pgup":
		return m.move(-m.space()), nil
	case "pgdown":
		return m.move(m.space()), nil
	case "/":
		m.mode = typing
	case "esc":
		m.search = ""
		return m.move(0), nil
	case "enter":
		if _, ok := m.current(); ok {
			m.mode, m.detail = details, inspected{}
			return m, m.inspect()
		}
	case "u":
		if r, ok := m.current(); ok && r.change != gone && r.Holding() > 0 {
			m.mode, m.question = asking, r.Lock
		} else {
			m.message = "nothing to unlock, because nobody holds the lock"
		}
	}
	return m, nil
}

// typed edits the filter.
func (m model) typed(key, text string) model {
	switch key {
	case "enter":
		m.mode = table
	case "esc":
		m.mode, m.search = table, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.search)
		m.search = m.search[:len(m.search)-size]
	default:
		m.search += text
	}
	return m
}

// inspect asks for all about the selected lock.
func (m model) inspect() tea.Cmd {
	name := m.selected
	return func() tea.Msg { return m.server.inspect(name) }
}

// shown returns the rows that pass the filter.
func (m model) shown() []row { return filter(m.rows, m.search) }

// current returns the selected row.
func (m model) current() (row, bool) {
	for _, r := range m.shown() {
		if r.Name == m.selected {
			return r, true
		}
	}
	return row{}, false
}

// move selects the lock that is n rows below the selected one, or below its place if that is no
// longer shown.
func (m model) move(n int) model {
	shown := m.shown()
	if len(shown) == 0 {
		return m
	}
	for i, r := range shown {
		if r.Name == m.selected {
			m.at = i
		}
	}
	m.at = max(0, min(m.at+n, len(shown)-1))
	m.selected = shown[m.at].Name
	return m
}
