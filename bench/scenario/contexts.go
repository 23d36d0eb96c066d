package scenario

import "context"

// contexts names the contexts that callers give to Lock and Unlock.
//
// A request handler's context can be cancelled, and clients treat it differently: rueidis pipelines
// its commands and watches it, and libraries that derive contexts from it register them there. So
// every contestant is measured with such contexts, the floors included.
//
// Each goroutine has one context for as long as its client is open, made before anything is
// measured. A handler has one per request. Making that costs the same whatever the lock, and would
// only add a constant to each contestant's allocations.
type contexts string

const cancellable contexts = "" // one per goroutine, as a request handler's

// make returns the contexts of n callers, and a function that cancels them.
func (c contexts) make(n int) (made []context.Context, cancel func()) {
	cancels := make([]context.CancelFunc, 0, n)
	for range n {
		ctx, cancel := context.WithCancel(context.Background())
		made, cancels = append(made, ctx), append(cancels, cancel)
	}
	return made, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}
