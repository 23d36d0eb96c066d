package wait

import (
	"math/rand/v2"
	"time"
)

// Random draws a duration below d, which must not be 0. Tests that replay traces of a model set it
// to draw 0, before anything else runs.
var Random = rand.N[time.Duration]
