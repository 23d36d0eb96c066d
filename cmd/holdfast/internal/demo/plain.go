package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// few is the number of sections up to which each one is told. With more, that the process waits and
// lets go goes without saying.
const few = 2

// plain prints a line for each event that matters.
type plain struct {
	out   io.Writer
	board *board
	parts map[string]part // by process
	nodes map[string]int  // by lock: how many servers the scene began with
}

func newPlain(out io.Writer, title string, scenes []scene) *plain {
	p := &plain{out: out, parts: map[string]part{}, nodes: map[string]int{}}
	fmt.Fprintf(out, "holdfast demo: %s\n", title)
	var all []part
	for _, s := range scenes {
		fmt.Fprintf(out, "  %-9s %s\n", s.lock, s.title)
		for _, part := range s.cast {
			p.parts[part.Process] = part
		}
		all = append(all, s.cast...)
		p.nodes[s.lock] = len(s.nodes)
	}
	p.board = newBoard(all)
	return p
}

func (p *plain) show(e event) {
	before := p.board.row(e.Process)
	var since time.Duration
	var was state
	if before != nil && before.state() != idle {
		since, was = before.since(), before.state()
	}
	handover := p.board.apply(e)
	if said := p.say(e, handover, was, since); said != "" {
		fmt.Fprintf(p.out, "%7.3f s  %-9s %-5s %s\n", e.At.Seconds(), e.Lock, e.Process, said)
	}
}

// say returns an event in words; "" if it is not worth a line. The process had been in the state
// before since the given time.
func (p *plain) say(e event, h handover, before state, since time.Duration) string {
	switch e.Kind {
	case waiting:
		return p.waits(e)
	case queued:
		if p.parts[e.Process].Type == writing {
			return "comes first from now on: new readers step back"
		}
		queue := strings.Join(p.board.queueOf(e.Lock), ", ")
		return fmt.Sprintf("queues up for up to %s: %s", brief(p.parts[e.Process].Wait), queue)
	case entered:
		return p.does(e.Process) + p.withWhom(e) + p.how(h) + p.whoWaits(e.Lock)
	case nested:
		return fmt.Sprintf("re-enters, level %d", e.Count)
	case leaving:
		if p.parts[e.Process].Sections <= few {
			return "lets go after " + p.stay(e, since)
		}
	case gaveUp:
		return fmt.Sprintf("gives up after %s: %s holds it for another %s",
			brief(e.At-since), p.board.processOf(e.Owner), brief(e.TTL))
	case killed:
		if before == waits {
			return "is killed in the queue (SIGKILL)" + p.whoWaits(e.Lock)
		}
		return "is killed (SIGKILL)" + p.whoWaits(e.Lock)
	case died:
		return fmt.Sprintf("dies; %d of %d servers are left",
			p.nodes[e.Lock]-len(p.board.deaths[e.Lock]), p.nodes[e.Lock])
	case failed:
		return "fails: " + e.Error
	case ready, unnested, left, ended:
	}
	return ""
}

// waits returns whether and how long a process waits, in words; "" if that goes without saying, or
// is said once it is in the queue.
func (p *plain) waits(e event) string {
	switch part := p.parts[e.Process]; {
	case part.Sections > few, part.Type == fair, len(p.board.holders(e.Lock)) == 0:
		return ""
	case part.Type == reading:
		if first := p.board.queueOf(e.Lock); len(first) > 0 {
			return "steps back for " + first[0]
		}
		fallthrough
	default:
		return fmt.Sprintf("waits, for up to %s", brief(part.Wait))
	}
}

// does returns what a process does inside.
func (p *plain) does(process string) string {
	switch p.parts[process].Type {
	case reading:
		return "reads"
	case writing:
		return "writes"
	default:
		return "holds"
	}
}

// withWhom returns who else is inside, where that is allowed.
func (p *plain) withWhom(e event) string {
	others := slices.DeleteFunc(p.board.holders(e.Lock), func(name string) bool {
		return name == e.Process
	})
	if !e.Shared || len(others) == 0 {
		return ""
	}
	return " with " + strings.Join(others, ", ")
}

// how returns how the lock came to its new holder.
func (p *plain) how(h handover) string {
	switch {
	case h.took == 0:
		return ""
	case h.from.killed:
		return fmt.Sprintf(", %s after %s was killed", brief(h.took), h.from.by)
	case len(h.past) > 0:
		return fmt.Sprintf(", %s after %s let go, past %s, who is dead", brief(h.took), h.from.by,
			strings.Join(h.past, ", "))
	default:
		return fmt.Sprintf(", %s after %s let go", brief(h.took), h.from.by)
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

// stay returns how long a section took, and how many leases that is if they were renewed.
func (p *plain) stay(e event, since time.Duration) string {
	stayed := brief(e.At - since)
	if lease := p.parts[e.Process].WatchdogLease; lease > 0 {
		stayed += fmt.Sprintf(", %d leases of %s", (e.At-since)/lease, brief(lease))
	}
	return stayed
}

func (*plain) tick(time.Duration) {}

func (*plain) close() {}
