// Package view shows locks on a terminal: the table of ls, top and the demo, and the line of a
// command that waits. Everything that it returns is safe to print, whatever is in Redis, and has no
// colours.
package view

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/rlock"
)

// Line returns one lock in one line, no longer than width columns; 0 is unlimited.
//
//	held by nightly on web-1 (pid 4711), 12.3 s left, 3 waiters
func Line(lock locks.Lock, width int) string {
	parts := []string{"free"}
	if len(lock.Holders) > 0 {
		parts = []string{"held by " + Holders(lock)}
		if n := levels(lock); n > 1 && owners(lock) == 1 {
			parts = append(parts, fmt.Sprintf("%d holds", n))
		}
		if left := TTL(lock.TTL); lock.TTL == rlock.NoExpiry {
			parts = append(parts, left)
		} else {
			parts = append(parts, left+" left")
		}
	}
	switch n := lock.Waiting(); n {
	case 0:
	case 1:
		parts = append(parts, "1 waiter")
	default:
		parts = append(parts, fmt.Sprintf("%d waiters", n))
	}
	return cut(strings.Join(parts, ", "), width)
}

// cut returns a line of no more than width columns; 0 is unlimited.
func cut(line string, width int) string {
	if width <= 0 {
		return line
	}
	return ansi.Truncate(line, width, "…")
}
