// Package view shows locks on a terminal: the table of ls, top and the demo, and the line of a
// command that waits.
package view

import (
	_ "charm.land/bubbletea/v2" // until it is used
	_ "charm.land/lipgloss/v2"

	"holdfast/cmd/holdfast/internal/locks"
)

// Table returns the lines of a table of locks, no longer than width columns; 0 is unlimited.
func Table(all []locks.Lock, width int) []string { return nil }

// Line returns one lock in one line: who holds it, for how long, how many wait.
func Line(lock locks.Lock, width int) string { return "" }
