package top

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/survey"
)

// fake is a server whose answers tests give by hand. It notes what it was asked.
type fake struct{ asked *[]string }

func (f fake) note(what string) tea.Msg {
	*f.asked = append(*f.asked, what)
	return nil
}

func (f fake) scan() tea.Msg               { return f.note("scan") }
func (f fake) inspect(name string) tea.Msg { return f.note("inspect " + name) }
func (f fake) unlock(l locks.Lock) tea.Msg {
	return f.note("unlock " + l.Name + " of " + l.Holders[0].Owner)
}

// program is a model with its fake server.
type program struct {
	model
	asked []string
	cmd   tea.Cmd // of the last update
}

func newProgram() *program {
	p := &program{}
	p.model = newModel(fake{&p.asked}, Options{Server: "redis:6379", Interval: time.Second})
	p.send(tea.WindowSizeMsg{Width: 100, Height: 12})
	return p
}

func (p *program) send(messages ...tea.Msg) {
	for _, message := range messages {
		var m tea.Model
		m, p.cmd = p.Update(message)
		p.model = m.(model)
	}
}

// press types keys: text, or the names "enter", "esc", "up", "down", "backspace", "ctrl+c".
func (p *program) press(keys ...string) {
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp},
		"down": {Code: tea.KeyDown}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, key := range keys {
		if press, ok := named[key]; ok {
			p.send(press)
			continue
		}
		for _, r := range key {
			p.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// run runs the command of the last update.
func (p *program) run() tea.Msg {
	if p.cmd == nil {
		return nil
	}
	return p.cmd()
}

// text returns the screen without styles and blanks at the ends of lines.
func (p *program) text() string {
	lines := strings.Split(ansi.Strip(p.View().Content), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// table returns the marks and names of the rows.
func (p *program) table() (rows []string) {
	for _, line := range p.body()[1:] {
		line = ansi.Strip(line)
		rows = append(rows, line[:2]+strings.Fields(line[2:])[0])
	}
	return rows
}

func held(name, owner string, waiters int) locks.Lock {
	return locks.Lock{Name: name, Kind: survey.KindPlain, TTL: 10 * time.Second,
		Holders: []locks.Holder{{Owner: owner, Count: 1}}, Waiters: make([]locks.Waiter, waiters)}
}

func found(all ...locks.Lock) scanned {
	return scanned{all: all, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), took: 7e6}
}

func TestLocksWithMostWaitersComeFirst(t *testing.T) {
	t.Parallel()
	p := newProgram()
	require.Contains(t, p.text(), "searching for locks")
	p.send(found(held("b", "x:1", 1), held("c", "x:1", 3), held("a", "x:1", 1)))
	require.Equal(t, []string{"> c", "  a", "  b"}, p.table())
	require.Contains(t, p.text(), "holdfast top  redis:6379  3 locks, 5 waiters  03:04:05, in 7 ms")
	require.True(t, p.View().AltScreen)
	p.send(found())
	p.send(found())
	require.Contains(t, p.text(), "no lock is held")
}

func TestWhatChangedIsMarkedForOneRefresh(t *testing.T) {
	t.Parallel()
	p := newProgram()
	p.send(found(held("a", "x:1", 0), held("b", "x:1", 0), held("c", "x:1", 0)))
	require.Equal(t, []string{"> a", "  b", "  c"}, p.table(), "the first scan")
	p.send(found(held("b", "y:2", 0), held("c", "x:1", 0), held("d", "x:1", 0)))
	require.Equal(t, []string{">-a", " *b", "  c", " +d"}, p.table())
	require.Contains(t, p.text(), "3 locks", "one of the rows is gone")
	p.send(found(held("b", "y:2", 0), held("c", "x:1", 0), held("d", "x:1", 0)))
	require.Equal(t, []string{"> b", "  c", "  d"}, p.table())
	p.send(found(held("a", "x:1", 0), held("b", "y:2", 0), held("c", "x:1", 0), held("d", "x:1", 0)))
	require.Equal(t, []string{" +a", "> b", "  c", "  d"}, p.table(), "the cursor stays at its lock")
}

func TestFilterIsEdited(t *testing.T) {
	t.Parallel()
	p := newProgram()
	p.send(found(held("order:1", "x:1", 0), held("stock", "x:1", 0), held("Order:2", "y:1", 0)))
	p.press("/", "ordeq", "backspace", "R")
	require.Equal(t, []string{"> Order:2", "  order:1"}, p.table())
	require.Contains(t, p.text(), "/ordeR▏")
	p.press("enter", "j")
	require.Equal(t, []string{"  Order:2", "> order:1"}, p.table())
	require.Contains(t, p.text(), "/ordeR  (esc shows all)")
	p.press("esc")
	require.Len(t, p.table(), 3)
	p.press("/", "nothing")
	require.Contains(t, p.text(), "no lock matches")
	p.press("esc", "/", "y:1")
	require.Equal(t, []string{"> Order:2"}, p.table(), "holders are searched as well")
}

func TestUnlockAsksFirst(t *testing.T) {
	t.Parallel()
	p := newProgram()
	p.send(found(held("a", "x:1", 0), held("b", "y:1", 0)))
	p.press("down", "u")
	require.Contains(t, p.text(), "Unlock b, held by y:1, 10.0 s left? (y/n)")
	p.press("n")
	require.Nil(t, p.run())
	require.Contains(t, p.text(), "not unlocked")
	p.press("u", "enter")
	require.Nil(t, p.run(), "only y is yes")
	p.press("u")
	p.send(found(held("b", "z:9", 0)))
	p.press("y")
	p.run()
	require.Equal(t, []string{"unlock b of y:1"}, p.asked, "as it was when asked")
	p.send(unlocked{err: &locks.ChangedError{Now: held("b", "z:9", 0)}})
	require.Contains(t, p.text(), "not unlocked, because the holder has changed: held by z:9")
	p.send(unlocked{before: held("b", "y:1", 0)})
	require.Contains(t, p.text(), "unlocked b, which was held by y:1, 10.0 s left")
	p.send(unlocked{err: errors.New("READONLY")})
	require.Contains(t, p.text(), "not unlocked: READONLY")
	p.send(unlocked{refusal: "NOPERM"})
	require.Contains(t, p.text(), "notice within 5 s: NOPERM")
}

func TestDetailsAreRefreshed(t *testing.T) {
	t.Parallel()
	p := newProgram()
	p.press("enter")
	require.Nil(t, p.run(), "there is nothing to inspect")
	p.send(found(held("a", "x:1", 0)))
	p.press("enter")
	p.run()
	require.Equal(t, []string{"inspect a"}, p.asked)
	require.Contains(t, p.text(), "reading the lock…")
	p.send(inspected{lock: held("a", "x:1", 0), at: time.Now()})
	require.Contains(t, p.text(), "x:1")
	p.send(found(held("a", "x:1", 0)))
	require.NotNil(t, p.cmd)
	batch, ok := p.run().(tea.BatchMsg)
	require.True(t, ok)
	batch[1]()
	require.Equal(t, []string{"inspect a", "inspect a"}, p.asked)
	p.send(inspected{err: errors.New("broken pipe")})
	require.Contains(t, p.text(), "broken pipe")
	p.press("enter")
	require.Equal(t, []string{"> a"}, p.table())
}

func TestTheLastTableStaysWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	p := newProgram()
	silent := scanned{err: errors.New("i/o timeout")}
	p.send(silent)
	require.Contains(t, p.text(), "Redis has not replied yet: i/o timeout")
	require.NotNil(t, p.cmd, "it goes on")
	p.send(found(held("a", "x:1", 0)))
	require.NotContains(t, p.text(), "i/o timeout")
	p.send(silent)
	require.Equal(t, []string{"> a"}, p.table())
	require.Contains(t, p.text(), "last update 03:04:05, no reply since then: i/o timeout")
	require.NotNil(t, p.cmd)
	p.send(found(held("a", "x:1", 0)))
	require.Equal(t, []string{"> a"}, p.table(), "nothing has changed")
}

func TestEachModeQuits(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{
		{"q"}, {"enter", "ctrl+c"}, {"/", "ctrl+c"}, {"u", "ctrl+c"},
	} {
		p := newProgram()
		p.send(found(held("a", "x:1", 0)))
		p.press(keys...)
		require.Equal(t, tea.QuitMsg{}, p.run(), "%v", keys)
	}
	p := newProgram()
	p.press("/", "q")
	require.Nil(t, p.run(), "it is a letter of the filter")
}

func TestTheScreenScrollsAndIsNeverTooLarge(t *testing.T) {
	t.Parallel()
	p := newProgram()
	var all []locks.Lock
	for r := 'a'; r <= 'z'; r++ {
		all = append(all, held(string(r), "x:1", 0))
	}
	p.send(found(all...))
	p.press(strings.Repeat("j", 30))
	require.Contains(t, p.table(), "> z")
	require.Contains(t, p.text(), "\n>  z ", "the row is on the screen")
	p.press("up")
	require.Contains(t, p.table(), "> y")
	p.press(strings.Repeat("k", 30))
	require.Equal(t, "> a", p.table()[0])
	for _, keys := range []string{"", "u", "n", "/"} {
		p.press(keys)
		for _, size := range []tea.WindowSizeMsg{{Width: 1, Height: 1}, {Width: 30, Height: 7}} {
			p.send(size)
			lines := strings.Split(p.View().Content, "\n")
			require.LessOrEqual(t, len(lines), size.Height)
			for _, line := range lines {
				require.LessOrEqual(t, ansi.StringWidth(line), size.Width)
			}
		}
	}
}
