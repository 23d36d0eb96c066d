// Package contest says what a lock is to the benchmark: the same few verbs for the floor, for this library and for every rival.
package contest

import (
	"context"
	"errors"
	"time"
)

// Part is what a contestant is there for.
type Part string

// The parts.
const (
	Floor Part = "floor" // raw scripts: what no lock can be cheaper than
	Ours  Part = "ours"
	Rival Part = "rival"
)

// ErrGaveUp is what Lock returns when the library stops waiting though its context has not ended: a poller that has used up its
// tries. The benchmark counts that, and calls Lock again.
var ErrGaveUp = errors.New("gave up")

// Setup is what a contestant is opened with.
type Setup struct {
	Addresses  []string      // of the servers: one, or those of a RedLock
	Goroutines int           // that use the client at the same time, at most
	Lease      time.Duration // where there is no watchdog; 0 is the contestant's default
	Period     time.Duration // of the watchdog's lease where there is one; 0 is the contestant's default
	Pipelining bool          // rueidis in its mode for many commands at a time from the start
	Waiter     bool          // this client waits for another one: only for floors that are no lock
}

// Contestant is a library with its settings.
type Contestant struct {
	Name    string
	Setting string // what differs from the defaults, and why
	Part    Part
	// Cut has the benchmark end its waits by their context when the time is up: it backs off for
	// long, or was seen to wait for a message that never came. The others' contexts could be
	// cancelled too, but end only after the round.
	Cut bool
	// Java says that the client is in Java: another program than this one has it.
	Java bool
	Open func(Setup) (Client, error) // nil if it is in Java
}

// Client is a connected client.
type Client interface {
	// Locker is the lock of a name for one goroutine at a time.
	Locker(name string) Locker
	// Close closes the connections, and ends everybody's waits, possibly with an error.
	Close()
}

// Locker is one goroutine's view of a lock.
type Locker interface {
	// Lock blocks until the lock is had, or until ctx ends.
	Lock(ctx context.Context) error
	// Unlock releases what Lock got, and blocks until the server has said so.
	Unlock(ctx context.Context) error
}
