// Package hooks is what package rlock shows to the packages that make one lock of several,
// multilock and redlock, and to nobody else.
package hooks

import (
	"context"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// Hooks are functions of package rlock, for its types of a lock and of a hold. They are safe for
// concurrent use.
type Hooks[Lock, Hold any] struct {
	// OnEnd has f told when a hold ends, and why, before its context ends; at once if it has ended.
	// f must not block.
	OnEnd func(h Hold, f func(reason error))
	// Closes reports whether the client of a hold is being closed; false for a hold of another
	// package.
	Closes func(h Hold) bool

	// Batch returns which locks can be taken with one in a batch: those of an equal, valid value.
	Batch func(Lock) Batch
	// TryBatch tries once to take several locks of one batch, for the owner in ctx: all or none.
	TryBatch func(ctx context.Context, lease time.Duration, locks []Lock) ([]Hold, error)
	// ReleaseBatch is Unlock for holds of several locks of one batch.
	ReleaseBatch func(holds []Hold) []error

	// Identity says which lock of its server a lock is.
	Identity func(Lock) Identity

	// Node returns a plain lock as part of a lock over several servers; an error for other kinds.
	Node func(Lock) (Node, error)
}

// Batch is which locks one script can take: plain ones of one client and slot. The zero value is
// none.
type Batch struct {
	Client string // its id
	Slot   uint16
}

// Identity says which lock it is. Locks that are equal in all of it are one lock.
type Identity struct {
	Server string // what its Redis is called; "" if nobody said, and its address may change
	Slot   uint16 // in the order of slots on a cluster; 0 elsewhere
	Name   string
	Shared bool   // it is the read mode of a read-write lock
	Kind   string // locks of different kinds under one name are different locks to an owner
	Client string // the id of its client
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
	Pool() *wait.Pool
	Closing() <-chan struct{}

	Acquire(owner string, lease time.Duration, d lua.Delay) (lua.Vote, error)
	Reenter(owner string, count int, lease time.Duration) (bool, error)
	Extend(owner string, lease time.Duration) (bool, error)
	Release(owner string) (lua.Released, error)
	// Permanent reports whether waiting does not help against an error of these.
	Permanent(err error) bool
	// CleanUp has Release called in the background until it succeeds, or the time has come.
	CleanUp(owner string, until time.Time)

	// Hold watches over what Acquire took: until its deadline, or renewed until it is dropped. It
	// returns nil if the client is closed.
	Hold(owner string, as owner.Token, deadline time.Time, renew bool, p Part) NodeHold
	// Subscribe listens for releases.
	Subscribe() *pubsub.Subscription
}

// Part hears what becomes of what is held on a node. Its methods must not block.
type Part interface {
	// Ended says that it is over, and why.
	Ended(reason error)
	// Renewed says that it was renewed.
	Renewed()
}

// NodeHold is what is held on a node.
type NodeHold interface {
	Deadline() time.Time
	Extend(deadline time.Time)
	SetRenew(renew bool)
	// MayLast notes that Redis may be asked to keep it for lease, before it is.
	MayLast(lease time.Duration)
	// Drop ends it here. Redis is not asked.
	Drop()
}

// set is a Hooks.
var set any

// Set is called by package rlock.
func Set[Lock, Hold any](h Hooks[Lock, Hold]) { set = h }

// Get returns what was set.
func Get[Lock, Hold any]() Hooks[Lock, Hold] { return set.(Hooks[Lock, Hold]) }
