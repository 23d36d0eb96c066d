package wait

import "time"

// Backoff draws the delays between failing tries. The upper bound of the delay doubles, and the
// delay is drawn from the upper half, because callers that failed together should not try again
// together. The zero value is ready to use.
type Backoff struct {
	delay    time.Duration
	Failures int // delays drawn so far
}

// Next returns a delay whose upper bound grows from 10 ms to 1 s.
func (bo *Backoff) Next() time.Duration { return bo.Within(10*time.Millisecond, time.Second) }

// Within returns a delay whose upper bound starts at first and grows up to longest.
func (bo *Backoff) Within(first, longest time.Duration) time.Duration {
	bo.delay = min(max(2*bo.delay, first), longest)
	bo.Failures++
	return bo.delay/2 + Random(bo.delay/2)
}
