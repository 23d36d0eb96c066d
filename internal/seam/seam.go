// Package seam is what package rlock shows of itself to the packages that make one lock of several, multilock and redlock,
// and to nobody else.
package seam

import (
	"context"
	"time"

	"holdfast/internal/crew"
	"holdfast/internal/owner"
	"holdfast/lua"
	"holdfast/pubsub"
)

// Inside are functions of package rlock, for its types of a lock and of a hold. They are safe for concurrent use.
type Inside[Lock, Hold any] struct {
	// OnEnd has f told when a hold ends, and why, by whoever ends it and before its context does; at once if it has ended.
	// f must not block.
	OnEnd func(h Hold, f func(reason error))
	// Closes reports whether the client of a hold is being closed; false for a hold not made by rlock.
	Closes func(h Hold) bool

	// Apart tells how far a lock can be taken together with others: with those of an equal, valid value.
	Apart func(Lock) Company
	// TryTogether tries once to take several plain locks of one company, for the owner in ctx: all or none.
	TryTogether func(ctx context.Context, lease time.Duration, locks []Lock) ([]Hold, error)
	// ReleaseTogether is Unlock for holds of several plain locks of one company.
	ReleaseTogether func(holds []Hold) []error

	// Place says which lock of its server a lock is.
	Place func(Lock) Place

	// Node is how a plain lock takes part in a lock over several servers; it returns an error for any other kind.
	Node func(Lock) (Node, error)
}

// Company is which locks can be taken with one script: plain ones of one client and one slot. The zero value is none.
type Company struct {
	Client string // its id
	Slot   uint16
}

// Place says where a lock is. Locks that are equal in all of it are one lock.
type Place struct {
	Server string // what its Redis is called; "" if nobody said, and it has no address that stays
	Slot   uint16 // in the order of slots on a cluster; 0 elsewhere
	Name   string
	Shared bool   // it is the read side of a read-write lock
	Kind   string // which locks exclude each other for one owner: those of different kinds under one name
	Client string // the id of its client
}

// Node is a plain lock on one of the servers of a RedLock. Its commands block until there is an answer, and cannot be
// cancelled.
type Node interface {
	Name() string
	Server() string
	Client() string // its id
	Clustered() bool
	NewOwner() string
	WatchdogLease() time.Duration
	CommandTimeout() time.Duration
	Warn(message string, details ...any)
	Crew() *crew.Crew
	Closing() <-chan struct{}

	Acquire(owner string, lease time.Duration, d lua.Delay) (lua.Vote, error)
	Reenter(owner string, count int, lease time.Duration) (bool, error)
	Extend(owner string, lease time.Duration) (bool, error)
	Release(owner string) (lua.Released, error)
	// Hopeless tells that waiting does not help against an error of these.
	Hopeless(err error) bool
	// Abandon has Release called in the background until it succeeds, or the time has come.
	Abandon(owner string, until time.Time)

	// Hold watches over what Acquire took: until its deadline, or renewed until it is let go. It returns nil if the client is
	// closed.
	Hold(owner string, as owner.Token, deadline time.Time, renew bool, p Part) NodeHold
	// Subscribe listens for releases.
	Subscribe() *pubsub.Subscription
}

// Part hears what becomes of what is held on a node. Its methods must not block.
type Part interface {
	// Ended tells that it is over, and why.
	Ended(reason error)
	// Renewed tells of each renewal.
	Renewed()
}

// NodeHold is what is held on a node.
type NodeHold interface {
	Deadline() time.Time
	Extend(deadline time.Time)
	SetRenew(renew bool)
	// MayLast says that Redis may be asked to keep it for lease, before it is.
	MayLast(lease time.Duration)
	// LetGo ends it here. Redis is not asked.
	LetGo()
}

// inside is an Inside.
var inside any

// Open is called by package rlock.
func Open[Lock, Hold any](i Inside[Lock, Hold]) { inside = i }

// Enter gives what was opened.
func Enter[Lock, Hold any]() Inside[Lock, Hold] { return inside.(Inside[Lock, Hold]) }
