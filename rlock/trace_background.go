package rlock

import "sync"

// mostUntold is how many calls may wait for a tracer that blocks, before some are left out.
const mostUntold = 4096

// background makes calls for goroutines that must not block, such as those of a tracer or a logger:
// one call after the other, in order. It has a goroutine while there are calls to make.
type background struct {
	client *Client
	inline bool // a caller makes the calls itself once the client has been closed

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
	if starts {
		b.start()
	}
}

func (b *background) start() {
	switch {
	case b.client.group.Go(b.run):
	case b.inline:
		b.run()
	default:
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

// hasRoom reports whether fewer calls than most are waiting.
func (b *background) hasRoom(most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.untold) < most
}

// run tells until there is nothing more.
func (b *background) run() {
	done := false
	defer func() {
		if !done {
			b.start() // a call has ended the goroutine
		}
	}()
	for f := b.next(); f != nil; f = b.next() {
		f()
	}
	done = true
}

// next returns the next call; nil if there is none, and nobody tells any more.
func (b *background) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.untold) == 0 {
		b.untold, b.telling, b.full = nil, false, false
		return nil
	}
	f := b.untold[0]
	b.untold[0] = nil
	b.untold = b.untold[1:]
	return f
}
