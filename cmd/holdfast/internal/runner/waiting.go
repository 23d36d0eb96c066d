package runner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/tty"
	"holdfast/cmd/holdfast/internal/view"
)

const (
	// unremarkable is how long a wait may last without a word.
	unremarkable = 300 * time.Millisecond
	redrawn      = time.Second
)

// showWait tells on standard error that the lock is waited for, until ctx ends: with a line that is
// redrawn on a terminal and erased at the end, and with one line that stays elsewhere.
func (o Options) showWait(ctx context.Context, l *lock) {
	began, draws := time.Now(), tty.Are(os.Stderr) && !o.JSON
	for pause := unremarkable; ; pause = redrawn {
		select {
		case <-ctx.Done():
			if draws && pause == redrawn {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			return
		case <-time.After(pause):
		}
		if draws || pause == unremarkable {
			o.drawWait(ctx, l, time.Since(began), draws)
		}
	}
}

// drawWait prints who holds the lock.
func (o Options) drawWait(ctx context.Context, l *lock, since time.Duration, redraw bool) {
	ctx, cancel := context.WithTimeout(ctx, redrawn)
	defer cancel()
	text, width := fmt.Sprintf("lock %q: waiting", o.Name), 0
	if redraw {
		text += fmt.Sprintf(" for %v", since.Round(time.Second))
		width = tty.Width(os.Stderr)
	}
	if width > 0 {
		width = max(width-len("holdfast: ")-len(text)-len(": "), 1)
	}
	found, err := o.look(ctx, l)
	found.Waiters = slices.DeleteFunc(found.Waiters, func(w locks.Waiter) bool {
		return l.isOwn(w.Owner)
	})
	found.Holders = slices.DeleteFunc(found.Holders, func(h locks.Holder) bool {
		return l.isOwn(h.Owner) // until replicas have the lock
	})
	switch {
	case err != nil && connect.Passes(err) && redraw: // elsewhere the line stays
		text += ": Redis does not reply"
	case err == nil && len(found.Holders) > 0:
		if line := view.Line(found, width); line != "" {
			text += ": " + line
		}
	}
	switch {
	case context.Cause(ctx) == context.Canceled: //nolint:errorlint // the wait is over
	case redraw:
		fmt.Fprint(os.Stderr, "\r\x1b[Kholdfast: "+text)
	default:
		o.note("%s", text)
	}
}

// isOwn reports whether an owner is this run: a line about the others does not count it.
func (l *lock) isOwn(owner string) bool {
	return strings.HasPrefix(owner, l.clients[0].ID()+":")
}
