package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/view"
)

// refresh is how often the locks are looked at.
const refresh = 250 * time.Millisecond

// newScreen returns a function that prints a line of the story. On a terminal there is also a table
// of the locks that are in Redis, below the story, until close is called.
func newScreen(
	ctx context.Context, o Options, servers []rueidis.Client, prefix string,
) (show func(line string), closeScreen func()) {
	if o.Plain || !term.IsTerminal(int(o.Output.Fd())) || os.Getenv("TERM") == "dumb" {
		return func(line string) { fmt.Fprintln(o.Output, line) }, func() {}
	}
	program := tea.NewProgram(table{}, tea.WithOutput(o.Output), tea.WithInput(nil),
		tea.WithoutSignalHandler())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = program.Run() // without it there are no lines, but a verdict
	}()
	ctx, cancel := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for ctx.Err() == nil {
			program.Send(present(ctx, servers, prefix))
			select {
			case <-time.After(refresh):
			case <-ctx.Done():
			}
		}
	}()
	return func(line string) { program.Println(line) }, func() {
		cancel()
		<-looked
		program.Send([]locks.Lock(nil))
		program.Quit()
		<-ended
	}
}

// present returns the locks of the demo, on all servers.
func present(ctx context.Context, servers []rueidis.Client, prefix string) (all []locks.Lock) {
	for _, redis := range servers {
		for lock, err := range locks.List(ctx, redis, locks.Query{Pattern: prefix + "*"}) {
			if err == nil {
				lock.Name = strings.TrimPrefix(lock.Name, prefix)
				all = append(all, lock)
			}
		}
	}
	return all
}

// table is what Bubble Tea draws: the locks.
type table struct {
	all   []locks.Lock
	width int
}

// Init does nothing.
func (t table) Init() tea.Cmd { return nil }

// Update takes the locks and the size of the terminal.
func (t table) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case []locks.Lock:
		t.all = m
	case tea.WindowSizeMsg:
		t.width = m.Width
	}
	return t, nil
}

// View returns the lines of the table, by name.
func (t table) View() tea.View {
	if len(t.all) == 0 {
		return tea.NewView("")
	}
	return tea.NewView("\n" + strings.Join(view.Table(t.all, t.width), "\n"))
}
