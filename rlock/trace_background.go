package rlock

import "sync"

// mostUntold is how many calls may wait for a tracer that blocks, before some are left out.
const mostUntold = 4096

// background calls a tracer for goroutines that must not block: one call after the other, in order.
// It has a goroutine while there are calls to make.
type background struct {
	client *Client

	mu      sync.Mutex
	untold  []func() // guarded by mu
	telling bool     // guarded by mu; a goroutine tells
	full    bool     // guarded by mu; something was left out since all was told
}

// tell calls f later. It does not block.
func (b *background) tell(f func()) {
	b.mu.Lock()
	b.untold = append(b.untold, f)
	starts := !b.telling
	b.telling = true
	b.mu.Unlock()
	if starts && !b.client.group.Go(b.run) {
		// The client has been closed. A RedLock of other clients may still tell its tracer, and those
		// must not wait for it.
		go b.run()
	}
}

// tellIfRoom is like tell, for what may be left out while the tracer blocks.
func (b *background) tellIfRoom(f func()) {
	b.mu.Lock()
	full := len(b.untold) >= mostUntold
	first := full && !b.full
	b.full = b.full || full
	b.mu.Unlock()
	switch {
	case first:
		b.client.warn("holdfast: Options.Tracer blocks: until it returns it is not told of renewals " +
			"and failed nodes; never block in a tracer")
	case !full:
		b.tell(f)
	}
}

// run tells until there is nothing more.
func (b *background) run() {
	for {
		b.mu.Lock()
		all := b.untold
		b.untold = nil
		if b.telling = len(all) > 0; !b.telling {
			b.full = false
		}
		b.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, f := range all {
			f()
		}
	}
}
