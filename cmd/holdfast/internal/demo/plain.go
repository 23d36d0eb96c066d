package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plain prints a line for each event that matters.
type plain struct {
	out   io.Writer
	board *board
	parts map[string]part // by process
}

func newPlain(out io.Writer, title string, scenes []scene) *plain {
	p := &plain{out: out, parts: map[string]part{}}
	fmt.Fprintf(out, "holdfast demo: %s\n", title)
	var all []part
	for _, s := range scenes {
		fmt.Fprintf(out, "  %-9s %s\n", s.lock, s.title)
		for _, part := range s.cast {
			p.parts[part.Process] = part
		}
		all = append(all, s.cast...)
	}
	p.board = newBoard(all)
	return p
}

func (p *plain) show(e event) {
	before := p.board.row(e.Process)
	var since time.Duration
	if before != nil && before.state() != idle {
		since = before.since()
	}
	passage := p.board.apply(e)
	if said := p.say(e, passage, since); said != "" {
		fmt.Fprintf(p.out, "%7.3f s  %-9s %-5s %s\n", e.At.Seconds(), e.Lock, e.Process, said)
	}
}

// say puts an event into words; "" if it is not worth a line. since is when the process began to do what the event ends.
func (p *plain) say(e event, passage passage, since time.Duration) string {
	switch e.Kind {
	case waiting:
		if p.parts[e.Process].Sections == 1 && len(p.board.holders(e.Lock)) > 0 {
			return fmt.Sprintf("waits, for up to %s", brief(p.parts[e.Process].Wait))
		}
	case entered:
		return "holds" + p.how(passage) + p.whoWaits(e.Lock)
	case nested:
		return fmt.Sprintf("re-enters, level %d", e.Count)
	case leaving:
		if p.parts[e.Process].Sections == 1 {
			return "lets go after " + p.stay(e, since)
		}
	case gaveUp:
		return fmt.Sprintf("gives up after %s: %s holds it for another %s", brief(e.At-since), p.board.processOf(e.Owner), brief(e.TTL))
	case killed:
		return "is killed (SIGKILL)" + p.whoWaits(e.Lock)
	case failed:
		return "fails: " + e.Error
	case ready, unnested, left, ended:
	}
	return ""
}

// how says how the lock came to its new holder.
func (p *plain) how(passage passage) string {
	switch {
	case passage.took == 0:
		return ""
	case passage.from.killed:
		return fmt.Sprintf(", %s after %s was killed", brief(passage.took), passage.from.by)
	default:
		return fmt.Sprintf(", %s after %s let go", brief(passage.took), passage.from.by)
	}
}

func (p *plain) whoWaits(lock string) string {
	names := p.board.waiters(lock)
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "; " + names[0] + " waits"
	default:
		return "; " + strings.Join(names, ", ") + " wait"
	}
}

// stay says how long a section took, and how many leases that is if they were renewed.
func (p *plain) stay(e event, since time.Duration) string {
	stayed := brief(e.At - since)
	if lease := p.parts[e.Process].WatchdogLease; lease > 0 {
		stayed += fmt.Sprintf(", %d leases of %s", (e.At-since)/lease, brief(lease))
	}
	return stayed
}

func (*plain) tick(time.Duration) {}

func (*plain) close() {}
