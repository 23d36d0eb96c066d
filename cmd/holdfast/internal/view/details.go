package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/printable"
	"holdfast/internal/wire"
)

// Details returns all that is known of a lock, in lines with a word in front of each.
func Details(l locks.Lock, now time.Time) string {
	var d details
	d.line("lock", printable.Text(l.Name))
	d.line("kind", string(l.Kind))
	switch {
	case l.Holding() == 0:
		d.line("state", "free")
	case l.TTL < 0:
		d.line("state", "held, never expires")
	default:
		d.line("state", "held, expires in "+TTL(l.TTL))
	}
	for _, h := range l.Holders {
		text := h.Mode
		if text == "" {
			text = "holds"
		} else {
			text += "s" // reads, writes
		}
		if h.Count != 1 {
			text += fmt.Sprintf(" %d times", h.Count)
		}
		if !h.Client.Held.IsZero() {
			text += ", held for " + Since(h.Client.Held, now)
		}
		d.line("holder", printable.Short(h.Owner)+" "+text)
		d.client(h.Client, now)
	}
	d.more("holder", l.MoreHolders)
	for i, w := range l.Waiters {
		d.line("waiter", fmt.Sprintf("%d. %s", i+1, waiter(w, now)))
		d.client(w.Client, now)
	}
	d.more("waiter", l.MoreWaiters)
	if l.Token != 0 {
		d.line("token", strconv.FormatInt(l.Token, 10))
	}
	if l.Subscribers >= 0 {
		d.line("listeners", strconv.Itoa(l.Subscribers))
	}
	if l.Node != "" {
		d.line("node", fmt.Sprintf("%s, slot %d", l.Node, wire.Slot(l.Name)))
	}
	return d.String()
}

// details collects lines.
type details struct{ strings.Builder }

func (d *details) line(word, text string) { fmt.Fprintf(d, "%-10s %s\n", word, text) }

// client says who the client of the owner in the line above is, if it told Redis.
func (d *details) client(c locks.Client, now time.Time) {
	if !c.Known() {
		return
	}
	text := cmp.Or(printable.Short(c.Program), "process")
	if c.Label != "" {
		text = printable.Short(c.Label) + " (" + text + ")"
	}
	text += fmt.Sprintf(" on %s, pid %d", cmp.Or(printable.Short(c.Host), "unknown host"), c.PID)
	if !c.Start.IsZero() {
		text += ", running for " + Since(c.Start, now)
	}
	d.line("", text)
}

func (d *details) more(word string, n int) {
	if n > 0 {
		d.line(word, fmt.Sprintf("and %d more", n))
	}
}

// waiter says who waits, and since when.
func waiter(w locks.Waiter, now time.Time) string {
	text := printable.Short(w.Owner)
	switch {
	case w.Owner == "":
		text = "readers that wait for a writer"
	case w.Mode == "write":
		text += " waits to write, and new readers wait behind it"
	case w.Lease > 0:
		text += " is registered for a lease of " + w.Lease.String()
	default:
		text += " is queued"
	}
	if !w.Since.IsZero() {
		text += ", waiting for " + Since(w.Since, now)
	}
	if !w.Until.IsZero() {
		text += ", keeps its place for " + TTL(max(0, w.Until.Sub(now)))
	}
	return text
}

// Since formats how long ago a time was.
func Since(t, now time.Time) string { return TTL(max(0, now.Sub(t))) }
