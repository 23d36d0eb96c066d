package rlock

import (
	"holdfast/internal/owner"
	"holdfast/lua"
)

// NewFencedLock returns the fenced lock with the given name, a reentrant lock that numbers its
// acquisitions. See [Hold.Token]. The lock is compatible with RFencedLock of Redisson, and excludes
// other locks with its name, whose acquisitions have no numbers. For impossible names, see
// [Client.NewLock].
//
// The counter is a separate key that never expires, because the counter must never restart. Each
// name costs about a hundred bytes of Redis memory forever, so only fence a limited number of
// names.
func (c *Client) NewFencedLock(name string) *Lock { return c.fencedOf(c.options.mapped(name)) }

// fencedOf returns the fenced lock with a name in Redis.
func (c *Client) fencedOf(name string) *Lock {
	return c.newLock(name, traits{family: "fenced", handsOver: true, wakes: owner.Plain,
		inspect: lua.InspectFenced},
		newExclusive(c, name, "fenced", true))
}
