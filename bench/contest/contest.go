// Package contest defines a lock as the benchmark sees it: the same few methods for the floors, for
// this library and for every other one.
package contest

import (
	"context"
	"errors"
	"time"
)

// Part is the role of a contestant.
type Part string

// The parts.
const (
	Floor Part = "floor" // raw scripts, which no lock can beat
	Ours  Part = "ours"
	Other Part = "other"
)

// ErrGaveUp is returned by Lock when the library stops waiting although its context has not ended,
// such as a poller out of tries. The benchmark counts it and calls Lock again.
var ErrGaveUp = errors.New("gave up")

// Setup is what a contestant is opened with.
type Setup struct {
	Addresses  []string      // of the servers: one, or those of a RedLock
	Goroutines int           // the most that use the client at the same time
	Lease      time.Duration // without a watchdog; 0 is the contestant's default
	// lease of the watchdog, if there is one; 0 is the contestant's default
	Period     time.Duration
	Pipelining bool // rueidis pipelines every command from the start
	Batching   bool // the client sends the commands of many callers together
	Far        bool // the network is slow
	Waiter     bool // this client waits for another; only for floors that are no lock
}

// Contestant is a library with its settings.
type Contestant struct {
	Name    string
	Setting string // what differs from the defaults, and why
	Part    Part
	// Cut has the benchmark end its waits by their context when the time is up: it backs off for
	// long, or was seen to wait for a message that never came. The contexts of the others could be
	// cancelled too, but end only after the round.
	Cut bool
	// Java is set if the client is in Java, in another program than this one.
	Java bool
	Open func(Setup) (Client, error) // nil if it is in Java
}

// Client is a connected client.
type Client interface {
	// Locker returns the lock of that name for one goroutine at a time.
	Locker(name string) Locker
	// Close closes the connections and ends all waits, possibly with an error.
	Close()
}

// Locker is one goroutine's view of a lock.
type Locker interface {
	// Lock blocks until the lock is acquired, or until ctx ends.
	Lock(ctx context.Context) error
	// Unlock releases the lock and blocks until the server has confirmed that.
	Unlock(ctx context.Context) error
}
