// Package compose has what package rlock shares with packages multilock and redlock, which make a
// lock out of several locks, and with package rlocktest. These are the types that Internals of
// package rlock takes and returns.
package compose

import (
	"errors"
	"fmt"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// Access is the argument of Internals of package rlock. Only packages of this module can make one.
type Access struct{ _ struct{} }

// ErrInvalid is ErrInvalid of package rlock.
var ErrInvalid = errors.New("invalid argument")

// Invalid returns an [ErrInvalid] with a text that describes the mistake.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// CheckTimes returns an [ErrInvalid] if a wait or a lease can never work.
func CheckTimes(limit, lease time.Duration) error {
	switch {
	case limit < 0:
		return NegativeWait(limit)
	case lease == 0:
		return ErrNoLease
	}
	return nil
}

// NegativeWait returns the [ErrInvalid] of a negative wait.
func NegativeWait(limit time.Duration) error {
	return Invalid("wait must not be negative (got %v); use rlock.NoWait, a duration, or "+
		"rlock.Forever", limit)
}

// ErrNoLease is the [ErrInvalid] of a lease of 0.
var ErrNoLease = Invalid("lease must not be 0; use a duration, or rlock.Watchdog to renew the " +
	"lock until its release")

// Identity identifies a lock. Locks with equal identities are the same lock.
type Identity struct {
	Batch
	Batched bool   // for a plain lock, which a script can acquire together with others of its Batch
	Kept    bool   // for a lock of AtLeast
	Server  string // the name of the Redis; "" if the Redis has no name and its address may change
	Name    string
	Mode    int    // the read mode of a read-write lock comes after the write mode
	Kind    string // an owner treats locks of different kinds with the same name as different
	Queue   string // the key of the queue in Redis, which other locks may share; "" without a queue
}

// Batch is equal for all locks that one script can acquire together.
type Batch struct {
	Client string // the id of the client
	Slot   uint16 // on a cluster; 0 elsewhere
}

// Node is a plain lock on a server of a RedLock. Its commands block until the server replies, and
// cannot be canceled.
type Node interface {
	Name() string
	Server() string
	Client() string // the id of the client
	Clustered() bool
	NewOwner() string
	WatchdogLease() time.Duration
	CommandTimeout() time.Duration
	Warn(message string, details ...any)
	// Failed reports a failed operation of the node to the tracer. Failed does not block.
	Failed(operation string, err error)
	Pool() *wait.Pool
	Closing() <-chan struct{}

	Acquire(b lua.Ballot) (lua.Vote, error)
	// Extend extends the lease, and reports whether the owner holds the lock. Extend also sets the
	// number of levels, unless levels is 0.
	Extend(owner string, levels int, lease time.Duration) (bool, error)
	Release(owner string) (lua.Released, error)
	Held(by lua.Holder) error // the error that names the holder
	Permanent(err error) bool // whether err stays, however long the caller waits
	// CleanUp calls Release in the background until Release succeeds, but not after the time until.
	CleanUp(owner string, until time.Time)
	// Hold keeps the lock that Acquire acquired until the deadline, or until Drop if the lock is
	// renewed. Hold returns nil if the client is closed. site is the result of CallSite when the
	// caller acquired the RedLock.
	Hold(owner string, as owner.Token, site []uintptr, deadline time.Time, p Part) NodeAcquisition
	// CallSite returns the stack of the caller, or nil unless an option of the client asks for the
	// stack.
	CallSite() []uintptr
	Subscribe() *pubsub.Subscription // to releases of the lock
}

// Part is notified about the acquisition on one node. Its methods must not block.
type Part interface {
	Ended(reason error)     // called when the acquisition has ended
	Renewed(sent time.Time) // called after each renewal, whose request was sent at sent or later
}

// NodeAcquisition is the acquisition on a node.
type NodeAcquisition interface {
	Deadline() time.Time
	// Extended notes that Redis has extended the lock. The extended lock can be trusted until
	// deadline.
	Extended(deadline time.Time)
	SetRenew(renew bool)
	// MayRenew reports whether the lock, with a lease from now, stays within Options.MaxHold.
	MayRenew() bool
	// Expiry returns the reason why the deadline passed. The reason matches watchdog.ErrExpired.
	Expiry() error
	MayLast(lease time.Duration) // called before Redis is asked to keep the lock for lease
	Drop()                       // ends the acquisition in this process, without a command
}

// HeldLock describes a held lock.
type HeldLock struct {
	Name, Owner string
	Kind        string
	AcquiredAt  string // file and line; "" without Options.Debug
}
