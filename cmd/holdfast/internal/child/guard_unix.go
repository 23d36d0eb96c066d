//go:build unix

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// never is later than any instant of now.
const never = math.MaxInt64

// order is what the guard is to do: all of it, so that a later order replaces an earlier one. The
// instants are those of now.
type order struct {
	group      int   // the process group
	session    int   // that the group is in
	term, kill int64 // when to send each signal
	done       bool  // nothing any more
}

func (o order) String() string {
	return fmt.Sprintf("%d %d %d %d %t\n", o.group, o.session, o.term, o.kill, o.done)
}

// parseOrder is the inverse of String.
func parseOrder(line string) (o order, err error) {
	_, err = fmt.Sscanf(line, "%d %d %d %d %t", &o.group, &o.session, &o.term, &o.kill, &o.done)
	return o, err
}

func (o order) crew(mark string) crew { return crew{o.group, o.session, mark} }

// carryOut is "holdfast guard": it carries out the orders that it reads, and reports what it did.
// It kills the group, and returns an error, if the orders end without one that says that it is
// done. When it kills the group, it removes the files.
func carryOut(orders io.Reader, reports io.Writer, files ...string) error {
	for _, s := range Forwarded() {
		signal.Ignore(s) // it ends when run says so
	}
	signal.Ignore(unix.SIGPIPE, unix.SIGTSTP)
	received := make(chan order)
	go func() {
		defer close(received)
		for lines := bufio.NewScanner(orders); lines.Scan(); {
			o, err := parseOrder(lines.Text())
			if err != nil {
				return
			}
			received <- o
		}
	}()
	g := guard{order: order{term: never, kill: never}, mark: mark(os.Environ()), reports: reports,
		files: files}
	for {
		select {
		case o, more := <-received:
			switch {
			case !more:
				g.signal(Killed, unix.SIGKILL)
				return errors.New("holdfast run has ended, or has sent an unknown order")
			case o.done:
				return nil
			}
			g.accept(o)
		case <-time.After(g.nap()):
		}
		g.act()
	}
}

// guard is what a guard process knows of its group.
type guard struct {
	order
	mark    string
	phase   phase
	reports io.Writer
	files   []string
}

// phase is how far the end of a group has come.
type phase int

const (
	running    phase = iota
	terminated       // it was sent SIGTERM
	killed           // it was sent SIGKILL
)

// accept follows a new order. A group that was sent SIGTERM is not given more time: it is ending.
func (g *guard) accept(o order) {
	if g.phase != running {
		o.kill = min(o.kill, g.kill)
	}
	g.order = o
}

// nap returns for how long there is nothing to do. It is short, because the timers of a process
// stand still while the machine sleeps, and now does not.
func (g *guard) nap() time.Duration {
	const longest = time.Second
	next := g.kill
	if g.phase == running {
		next = min(next, g.term)
	}
	if g.phase == killed || next-now() > int64(longest) {
		return longest
	}
	return time.Duration(max(next-now(), 0))
}

// act sends what is due.
func (g *guard) act() {
	at := now()
	switch {
	case at >= g.kill && g.phase < killed:
		g.phase = killed
		g.signal(Killed, unix.SIGKILL)
	case at >= g.term && g.phase < terminated:
		g.phase = terminated
		g.signal(Terminated, unix.SIGTERM)
		g.crew(g.mark).send(unix.SIGCONT) // it may be stopped
	}
}

// signal sends the crew a signal, and reports that.
func (g *guard) signal(e Event, s syscall.Signal) {
	if e == Killed {
		for _, file := range g.files {
			_ = os.Remove(file) // it may be gone
		}
	}
	g.crew(g.mark).send(s)
	fmt.Fprintln(g.reports, int(e))
}
