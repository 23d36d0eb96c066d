//go:build !model

package wait

import (
	"math/rand/v2"
	"time"
)

// Random draws a duration below d, which must not be 0. Built with the tag model it draws 0, so
// that traces of a model can be replayed.
func Random(d time.Duration) time.Duration { return rand.N(d) }
