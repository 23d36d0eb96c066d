package wait

import (
	"math/rand/v2"
	"time"
)

// Random draws a duration below d. d must not be 0. Tests that replay traces of a model replace
// Random with a function that returns 0, before anything else runs.
var Random = rand.N[time.Duration]
