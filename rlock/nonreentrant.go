package rlock

import (
	"errors"

	"holdfast/internal/owner"
	"holdfast/internal/rediserr"
	"holdfast/lua"
)

// ErrReentry reports that the owner holds the lock already, and that the lock is not reentrant.
var ErrReentry = errors.New("the owner already holds this lock, which is not reentrant")

// NewNonReentrantLock returns the non-reentrant lock with the given name. If the owner holds the
// lock already, an attempt returns [ErrReentry] at once. The lock is compatible with the
// non-reentrant lock of Redisson, and excludes other locks with its name. For impossible names, see
// [Client.NewLock].
func (c *Client) NewNonReentrantLock(name string) *Lock {
	return c.nonReentrantOf(c.options.mapped(name))
}

// nonReentrantOf returns the non-reentrant lock with a name in Redis.
func (c *Client) nonReentrantOf(name string) *Lock {
	// The script is the script of the plain lock. A second attempt of an owner is detected in this
	// process, and a retried request must find its own acquisition.
	return c.newLock(name, traits{family: "non-reentrant", handsOver: true, takesTurns: true,
		wakes: owner.Plain, inspect: lua.Inspect, reentry: errReentersPlain},
		newExclusive(c, name, "nonreentrant", false))
}

var errReentersPlain = reentryError("Client.NewLock")

// reentryError returns an error that makes an attempt fail at once with ErrReentry. The advice is
// to use reentrant, the constructor of the corresponding reentrant lock.
func reentryError(reentrant string) error {
	return &rediserr.Error{Class: rediserr.ClassPermanent, Code: "NON_REENTRANT_REACQUIRE",
		Message: ErrReentry.Error(), Err: ErrReentry,
		Advice: "pass a context without this owner, or use " + reentrant}
}

// NewNonReentrantFairLock returns the non-reentrant fair lock with the given name. If the owner
// holds the lock already, an attempt returns [ErrReentry] at once, and does not join the queue. The
// lock is compatible with the non-reentrant fair lock of Redisson, and shares its queue with
// [Client.NewFairLock]. The lock excludes other locks with its name. For impossible names, see
// [Client.NewLock].
func (c *Client) NewNonReentrantFairLock(name string) *Lock {
	return c.nonReentrantFairOf(c.options.mapped(name))
}

// nonReentrantFairOf returns the non-reentrant fair lock with a name in Redis. The lock uses the
// scripts of the fair lock, for the reasons in nonReentrantOf.
func (c *Client) nonReentrantFairOf(name string) *Lock {
	return c.newFair(name, "non-reentrant fair", errReentersFair)
}

var errReentersFair = reentryError("Client.NewFairLock")
