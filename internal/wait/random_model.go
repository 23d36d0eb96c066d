//go:build model

package wait

import "time"

// Random draws 0, so that traces of a model can be replayed.
func Random(time.Duration) time.Duration { return 0 }
