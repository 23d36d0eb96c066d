package rlocktest

import "holdfast/rlock"

// What the checks need of a client beyond its public methods. These are stubs until package hooks
// has them: without them only the server is asked which locks are held.
var (
	// observes reports whether observe and waiters work.
	observes = false

	// observe calls began when a call of the client's locks has acquired a lock or a level of one,
	// on the goroutine of the caller, before the call returns. waits reports that it may have
	// waited for the lock: it was no attempt with rlock.NoWait, and no nested one.
	observe = func(c *rlock.Client, began func(h *rlock.Hold, waits bool)) {}

	// waiters returns the names of the locks that callers wait for, each as often as it is waited
	// for.
	waiters = func(c *rlock.Client) []string { return nil }

	// onEnd calls ended when a hold ends; at once if it has ended.
	onEnd = func(h *rlock.Hold, ended func(reason error)) {}
)
