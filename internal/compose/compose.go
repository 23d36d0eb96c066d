// Package compose has what package rlock shares with multilock and redlock, which make one lock of
// several, and with rlocktest: the types that Internals of package rlock takes and returns.
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

// Invalid returns an [ErrInvalid] that says what is wrong.
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
	// Hold keeps what Acquire acquired until its deadline, or until Drop if it is renewed.
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

// HeldLock describes a lock that is held.
type HeldLock struct {
	Name, Owner string
	Kind        string
	AcquiredAt  string // file and line; "" without Options.Debug
}
