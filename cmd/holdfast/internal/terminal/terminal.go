//go:build unix

// Package terminal runs a program on a pseudo-terminal, for tests: what the program writes is drawn
// by an emulator, whose screen can be read and waited for.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/termios"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/status"
)

// Terminal is a pseudo-terminal with one program, which has it as its controlling terminal.
type Terminal struct {
	cmd    *exec.Cmd
	file   *os.File   // the side that a human would sit at
	mu     sync.Mutex // held while the screen is drawn or read
	screen *vt.SafeEmulator
	drawn  chan struct{} // receives after each change of the screen
	ended  chan struct{} // closed when the program has ended and everything is drawn
	err    error         // of the program, once ended is closed
}

// Start starts cmd on a terminal of that size. Stop must be called.
func Start(cmd *exec.Cmd, columns, rows int) (*Terminal, error) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=")
	file, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = pty.Setsize(file, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err == nil {
		err = keepOutput(tty)
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	t := &Terminal{cmd: cmd, file: file, screen: vt.NewSafeEmulator(columns, rows),
		drawn: make(chan struct{}, 1), ended: make(chan struct{})}
	go t.draw()
	go t.answer()
	return t, nil
}

// keepOutput keeps Ctrl-C from discarding what the program has written and draw has not read yet:
// half a frame, on a busy machine.
func keepOutput(terminal *os.File) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = termios.SetTermios(int(fd), unix.B38400, unix.B38400, nil, nil, nil, nil,
			map[termios.L]bool{termios.NOFLSH: true})
	})
	return errors.Join(err, failed)
}

// answer passes on what the terminal answers to the program's questions, until Stop.
func (t *Terminal) answer() {
	text := make([]byte, 4<<10)
	for {
		n, err := t.screen.Read(text)
		if err != nil {
			return
		}
		_, _ = t.file.Write(text[:n]) // the program may be gone
	}
}

// draw draws what the program writes, until no process has the terminal. It shows the screen after
// the answers are passed on: keys that are typed at the sight of it come later.
func (t *Terminal) draw() {
	defer close(t.ended)
	text := make([]byte, 32<<10)
	for {
		n, err := t.file.Read(text)
		t.mu.Lock()
		_, _ = t.screen.Write(text[:n])        // the emulator accepts everything
		_, _ = t.screen.InputPipe().Write(nil) // blocks until answer has passed all on
		t.mu.Unlock()
		select {
		case t.drawn <- struct{}{}:
		default:
		}
		if err != nil {
			t.err = t.cmd.Wait()
			return
		}
	}
}

// Screen returns the text on the screen, without blanks at the ends of lines.
func (t *Terminal) Screen() string {
	t.mu.Lock() // the emulator guards its cells only while it looks for them
	defer t.mu.Unlock()
	var b strings.Builder
	for y := range t.screen.Height() {
		var line strings.Builder
		for x := range t.screen.Width() {
			if cell := t.screen.CellAt(x, y); cell != nil && cell.Content != "" {
				line.WriteString(cell.Content)
			} else if cell == nil || cell.Width != 0 {
				line.WriteByte(' ')
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Send types keys: text, "\r" for Enter, "\x03" for Ctrl-C.
func (t *Terminal) Send(keys string) error {
	_, err := t.file.WriteString(keys)
	return err
}

// Resize changes the size of the terminal, and tells the program.
func (t *Terminal) Resize(columns, rows int) error {
	t.screen.Resize(columns, rows)
	return pty.Setsize(t.file, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
}

// WaitFor blocks until the screen satisfies is. It returns an error with the screen if ctx ends, or
// if the program ended without.
func (t *Terminal) WaitFor(ctx context.Context, what string, is func(screen string) bool) error {
	ended := t.ended
	for {
		screen := t.Screen()
		if is(screen) {
			return nil
		}
		select {
		case <-t.drawn:
		case <-ended:
			screen = t.Screen()
			if is(screen) {
				return nil
			}
			return fmt.Errorf("the program ended before %s was seen:\n%s", what, screen)
		case <-ctx.Done():
			return fmt.Errorf("%s was not seen in time: %w\n%s", what, ctx.Err(), screen)
		}
	}
}

// WaitForText is WaitFor for a text.
func (t *Terminal) WaitForText(ctx context.Context, text string) error {
	return t.WaitFor(ctx, fmt.Sprintf("%q", text), func(screen string) bool {
		return strings.Contains(screen, text)
	})
}

// Wait blocks until the program has ended, and returns its exit status: 128 + n for a signal.
func (t *Terminal) Wait(ctx context.Context) (int, error) {
	select {
	case <-t.ended:
	case <-ctx.Done():
		return 0, fmt.Errorf("the program has not ended: %w\n%s", ctx.Err(), t.Screen())
	}
	var exit *exec.ExitError
	if t.err != nil && !errors.As(t.err, &exit) {
		return 0, t.err
	}
	return status.Of(t.cmd.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// Stop kills the program, and frees the terminal.
func (t *Terminal) Stop() {
	_ = t.cmd.Process.Kill()
	select {
	case <-t.ended:
	case <-time.After(time.Second): // another process has the terminal still
	}
	_ = t.file.Close()
	<-t.ended
	_ = t.screen.InputPipe().(io.Closer).Close() // ends the copying of answers
}
