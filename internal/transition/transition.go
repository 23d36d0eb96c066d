// Package transition changes states by tables. A transition that a table does not have is a bug.
package transition

import (
	"fmt"
	"testing"
)

// Bug reports a transition that does not exist. Tests may replace it.
var Bug = func(bug string) { panic(bug) }

// To changes a state to the next one. If the transition does not exist, it changes nothing, and
// reports a bug under test. what is the event, or the next state.
func To[State, What any](s *State, next State, exists bool, what What) {
	if exists {
		*s = next
	} else if testing.Testing() {
		Bug(fmt.Sprintf("%T: no %v in state %v", *s, what, *s))
	}
}
