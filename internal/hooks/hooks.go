// Package hooks gives other packages access to parts of package rlock that are not exported:
// [Hooks] to multilock and redlock, which make one lock of several, and [TestHooks] to rlocktest.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// Hooks holds functions of package rlock and its types. They are safe for concurrent use.
type Hooks[Lock, Hold any] struct {
	// OnEnd calls f with the reason when a hold ends, before its context ends; at once if it has
	// ended. f must not block.
	OnEnd func(h Hold, f func(reason error))
	// NewHold is NewHold of package rlock for a lock made of others, first of all of that one, which
	// may be nil. kept is another hold of the same level. The acquisition keeps it, and Release and
	// Leave get it, so that it is noticed if the caller drops h.
	NewHold func(ctx context.Context, acquisition any, first Lock) (h, kept Hold, end func(error))
	// TakeOver returns another hold of a part for its new owner, the whole. From then on
	// a part counts as dropped when the whole is.
	TakeOver func(part, whole Hold) Hold
	// ReportDropped logs, once, by the client of a lock, if nobody can release the first of some holds
	// any more. The others are nested in it. Call it at each renewal.
	ReportDropped func(of Lock, holds []Hold)
	// IsClosing reports whether a hold's client is being closed; false for those of other packages.
	IsClosing func(h Hold) bool
	// TryBatch tries once to acquire several locks of one batch, for the owner in ctx: all or none.
	TryBatch func(ctx context.Context, lease time.Duration, locks []Lock) ([]Hold, error)
	// ReleaseBatch unlocks holds of several locks of one batch. It returns one error for each.
	ReleaseBatch func(holds []Hold) []error
	// Identity returns what tells a lock from others.
	Identity func(Lock) Identity
	// Trace begins the trace of a call that wants a lock made of others, with the tracer of the client
	// of one of them, which may be nil.
	Trace func(ctx context.Context, of Lock, kind, name, server string, wait, lease time.Duration,
	) Call[Hold]
	// Node returns a plain lock as part of a lock over several servers; an error for other kinds.
	Node func(Lock) (Node, error)
}

// Call is the trace of a call that wants a lock. Its methods do nothing without a tracer.
type Call[Hold any] interface {
	// Context returns the context with which the call goes on, which derives from ctx.
	Context(ctx context.Context) context.Context
	Reenters()  // called if the owner has the lock already
	WaitStart() // called when the caller begins to wait
	Heads()     // called when it becomes the first to wait
	// End is called with the result. Nobody else has the hold yet.
	End(h Hold, err error)
}

// Slotted is an acquisition with several levels, or one of several that count as levels of one. It
// keeps what package rlock traces of them.
type Slotted interface{ TraceSlot() *atomic.Value }

// ErrInvalid is ErrInvalid of package rlock.
var ErrInvalid = errors.New("invalid argument")

// Invalid returns an [ErrInvalid] that says what is wrong.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// CheckTimes returns an [ErrInvalid] if a wait or a lease can never work.
func CheckTimes(limit, lease time.Duration) error {
	if limit < 0 {
		return Invalid("the wait %v is negative: want a time, rlock.Forever, or rlock.NoWait, which "+
			"a negative one is in Redisson", limit)
	}
	return CheckLease(lease)
}

// CheckLease returns an [ErrInvalid] if a lease can never work, whatever the lock.
func CheckLease(lease time.Duration) error {
	if lease == 0 {
		return Invalid("the lease is 0: want a time, or rlock.Watchdog, which renews the lock until " +
			"it is released")
	}
	return nil
}

// Identity tells locks apart. Locks with equal identities are one lock.
type Identity struct {
	Batch
	Batched bool   // one script can acquire it with others of its Batch: it is a plain lock
	Server  string // the name of its Redis; "" if it has no name and its address may change
	Name    string
	Mode    int    // the read mode of a read-write lock comes after the write mode
	Kind    string // locks of different kinds under one name are different locks to an owner
	Queue   string // the key of its queue in Redis, which other locks may share; "" if it has none
}

// Batch is what locks have in common that one script can acquire.
type Batch struct {
	Client string // the id of the client
	Slot   uint16 // on a cluster; 0 elsewhere
}

// Node is a plain lock on one of the servers of a RedLock. Its commands block until there is a
// reply, and cannot be cancelled.
type Node interface {
	Name() string
	Server() string
	Client() string // its id
	Clustered() bool
	NewOwner() string
	WatchdogLease() time.Duration
	CommandTimeout() time.Duration
	Warn(message string, details ...any)
	// Failed tells the tracer that the node did not do what it was asked for. It does not block.
	Failed(operation string, err error)
	Pool() *wait.Pool
	Closing() <-chan struct{}

	Acquire(owner string, lease time.Duration, d lua.Delay) (lua.Vote, error)
	// Extend extends the lease, and reports whether the owner holds the lock. It also sets the
	// number of levels, unless levels is 0.
	Extend(owner string, levels int, lease time.Duration) (bool, error)
	Release(owner string) (lua.Released, error)
	Held(by lua.Holder) error // the error that says who holds the lock
	Permanent(err error) bool // whether err stays, however long the caller waits
	// CleanUp calls Release in the background until it succeeds, but not after until.
	CleanUp(owner string, until time.Time)
	// Hold keeps what Acquire acquired until its deadline, or until it is dropped if it is renewed.
	// It returns nil if the client is closed.
	// site is where the caller acquired the RedLock, as CallSite returned.
	Hold(owner string, as owner.Token, site []uintptr, deadline time.Time, p Part) NodeAcquisition
	// CallSite returns the stack of the caller; nil unless an option of the client asks for it.
	CallSite() []uintptr
	Subscribe() *pubsub.Subscription // to releases
}

// Part is notified about the acquisition on one node. Its methods must not block.
type Part interface {
	Ended(reason error) // called when the acquisition has ended
	Renewed()           // called after each renewal
}

// NodeAcquisition is the acquisition on one node.
type NodeAcquisition interface {
	Deadline() time.Time
	// Extended notes that Redis has extended the lock, which can be trusted until deadline.
	Extended(deadline time.Time)
	SetRenew(renew bool)
	// MayRenew reports whether the lock, with a lease from now, stays within Options.MaxHold.
	MayRenew() bool
	// Expiry returns why the deadline has passed. It matches watchdog.ErrExpired.
	Expiry() error
	MayLast(lease time.Duration) // called before Redis is asked to keep the lock for lease
	Drop()                       // ends the acquisition in this process, without a command
}

// TestHooks holds what package rlocktest looks at, in a client under test. They are safe for
// concurrent use.
type TestHooks[Client, Hold any] struct {
	// Observe calls f with each hold of a lock of package rlock that a caller acquires through the
	// client, on the caller's goroutine, before the caller has it. f must not block.
	Observe func(c Client, f func(Hold))
	// Inside reports whether h was acquired with a context that comes from that of outer.
	Inside func(h, outer Hold) bool
	// Share reports whether two holds of one lock never exclude each other: two read holds.
	Share func(a, b Hold) bool
	// Releasing reports whether the release of a hold has begun.
	Releasing func(h Hold) bool
	// Held returns what the client holds at this moment.
	Held func(c Client) []HeldLock
	// Waiters returns how many callers wait for a lock through the client.
	Waiters func(c Client) int
}

// HeldLock describes a lock that is held.
type HeldLock struct {
	Name, Owner string
	Kind        string
	AcquiredAt  string // file and line; "" without Options.Debug
}

var testSet any // the registered TestHooks

// SetTest registers the hooks for tests. Package rlock calls it.
func SetTest[Client, Hold any](h TestHooks[Client, Hold]) { testSet = h }

// GetTest returns the registered hooks for tests.
func GetTest[Client, Hold any]() TestHooks[Client, Hold] {
	return testSet.(TestHooks[Client, Hold])
}

var set any // the registered Hooks

// Set registers the hooks. Package rlock calls it.
func Set[Lock, Hold any](h Hooks[Lock, Hold]) { set = h }

// Get returns the registered hooks.
func Get[Lock, Hold any]() Hooks[Lock, Hold] { return set.(Hooks[Lock, Hold]) }
