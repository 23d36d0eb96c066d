package rlock

import "holdfast/lua"

// NewFencedLock returns the fenced lock called name: a reentrant lock that numbers its
// acquisitions, see [Hold.Token]. It is Redisson's RFencedLock, and excludes the other locks under
// its name, which do not number theirs. For impossible names see [Client.NewLock].
//
// The counter is a separate key that never expires, because it must never restart: a name that was
// used once costs about a hundred bytes forever. Fence a bounded number of names.
func (c *Client) NewFencedLock(name string) *Lock { return c.fencedOf(c.options.mapped(name)) }

// fencedOf returns the fenced lock with a name in Redis.
func (c *Client) fencedOf(name string) *Lock {
	return c.newLock(name, traits{family: "fenced", handsOver: true, inspect: lua.InspectFenced},
		newExclusive(c, name, "fenced", true))
}
