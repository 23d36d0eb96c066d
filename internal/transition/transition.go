// Package transition changes states by tables. A transition that a table does not have is a bug.
package transition

import (
	"fmt"
	"log/slog"
	"sync"
)

// Bug reports a transition that does not exist. It logs each one once. Tests replace it: that of
// package redistest panics.
var Bug = logOnce

// To changes a state to the next one. If the transition does not exist, it changes nothing and
// reports a bug. what is the event, or the next state.
func To[State, What any](s *State, next State, exists bool, what What) {
	if exists {
		*s = next
	} else {
		Bug(fmt.Sprintf("%T: no %v in state %v", *s, what, *s))
	}
}

var logged sync.Map // of bug to nil

// logOnce logs in the background, because callers hold a mutex and a log handler may block.
func logOnce(bug string) {
	if _, before := logged.LoadOrStore(bug, nil); !before {
		go slog.Error("holdfast: ignored an impossible transition; "+
			"please report this bug of holdfast", "transition", bug)
	}
}
