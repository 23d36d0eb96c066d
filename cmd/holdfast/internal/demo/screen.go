package demo

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/tty"
	"holdfast/cmd/holdfast/internal/view"
)

// height is that of the table: a blank line, the header and all locks. Bubble Tea leaves lines of a
// frame that shrinks.
const height = 9

// screen prints lines. On a terminal it shows the locks in Redis below them, until it is closed.
type screen struct {
	print func(line string)
	show  func([]locks.Lock)
	close func()
}

func newScreen(o Options) screen {
	if o.Plain || !tty.Are(o.Output) || os.Getenv("TERM") == "dumb" {
		return screen{func(line string) { fmt.Fprintln(o.Output, line) }, func([]locks.Lock) {},
			func() {}}
	}
	program := tea.NewProgram(table{}, tea.WithOutput(unasked{o.Output}), tea.WithInput(nil),
		tea.WithoutSignalHandler())
	go program.Run() //nolint:errcheck // without it there are no lines, but a verdict
	show := func(all []locks.Lock) { program.Send(all) }
	return screen{func(line string) { program.Println(line) }, show, func() {
		show(nil)
		program.Quit()
		program.Wait()
		fmt.Fprint(o.Output, ansi.CursorUp(height-1))
	}}
}

// unasked is a terminal that Bubble Tea does not ask what it can do: nobody would read the answer.
type unasked struct{ *os.File }

func (u unasked) Write(text []byte) (int, error) {
	const question = ansi.RequestModeSynchronizedOutput + ansi.RequestModeUnicodeCore
	_, err := u.File.Write(bytes.ReplaceAll(text, []byte(question), nil))
	return len(text), err
}

// table is what Bubble Tea draws: the locks.
type table struct {
	all   []locks.Lock
	width int
}

func (t table) Init() tea.Cmd { return nil }

func (t table) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case []locks.Lock:
		t.all = m
	case tea.WindowSizeMsg:
		t.width = m.Width
	}
	return t, nil
}

func (t table) View() tea.View {
	lines := make([]string, height)
	if len(t.all) > 0 {
		copy(lines[1:], view.Table(t.all, t.width, time.Now()))
	}
	return tea.NewView(strings.Join(lines, "\n"))
}
