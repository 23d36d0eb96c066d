// Package transition reports transitions that a table of states does not have. They are bugs.
package transition

import (
	"fmt"
	"log/slog"
	"sync"
)

// Bug reports a transition that does not exist. It logs each one once. Tests replace it: that of
// package redistest panics.
var Bug = logOnce

// Missing reports that a state has no such transition. The caller then stays in the state. what is
// the event, or the next state.
func Missing[State, What any](s State, what What) {
	Bug(fmt.Sprintf("%T: no %v in state %v", s, what, s))
}

var logged sync.Map // of bug to nil

// logOnce logs in the background, because callers hold a mutex and a log handler may block.
func logOnce(bug string) {
	if _, before := logged.LoadOrStore(bug, nil); !before {
		go slog.Error("holdfast: ignored an impossible transition; "+
			"please report this bug of holdfast", "transition", bug)
	}
}
