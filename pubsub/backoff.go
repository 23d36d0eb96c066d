package pubsub

import (
	"math/rand/v2"
	"time"
)

const (
	firstDelay   = 10 * time.Millisecond
	longestDelay = time.Second

	// A refusal is a matter of configuration, so asking often gains nothing.
	firstRefusedDelay   = time.Second
	longestRefusedDelay = 30 * time.Second
)

// backoff returns how long to wait after the given number of failures in a row.
func backoff(failures int) time.Duration {
	return exponential(firstDelay, longestDelay, failures)
}

// refusedBackoff is backoff for a channel that the server refuses.
func refusedBackoff(failures int) time.Duration {
	return exponential(firstRefusedDelay, longestRefusedDelay, failures)
}

// exponential doubles first with every failure after the first one, up to
// longest. Half of the result is random, so that clients that lost the same
// server do not come back in step.
func exponential(first, longest time.Duration, failures int) time.Duration {
	d := first
	for i := 1; i < failures && d < longest; i++ {
		d *= 2
	}
	d = min(d, longest)
	return d/2 + rand.N(d/2+1)
}

// outage is a node whose connection was lost or could not be made.
type outage struct {
	failures int
	until    time.Time // do not dial before
	logged   bool
}

// outages holds the nodes that failed, until they accept a channel again. It is
// guarded by Hub.mu.
type outages map[string]*outage

// until returns when the node may be dialled.
func (o outages) until(node string) time.Time {
	if out := o[node]; out != nil {
		return out.until
	}
	return time.Time{}
}

// failed records another failure of the node.
func (o outages) failed(node string, now time.Time) *outage {
	for name, out := range o {
		// The node is not in use any more, or it would have failed again.
		if now.Sub(out.until) > time.Minute {
			delete(o, name)
		}
	}
	out := o[node]
	if out == nil {
		out = new(outage)
		o[node] = out
	}
	out.failures++
	out.until = now.Add(backoff(out.failures))
	return out
}

// over removes a node that serves us again, and reports whether its outage was
// logged.
func (o outages) over(node string) (logged bool) {
	out := o[node]
	delete(o, node)
	return out != nil && out.logged
}
