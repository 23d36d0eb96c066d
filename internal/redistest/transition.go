package redistest

import "holdfast/internal/transition"

// A transition that does not exist is a bug, which ends the tests.
func init() { transition.Bug = func(bug string) { panic(bug) } }
