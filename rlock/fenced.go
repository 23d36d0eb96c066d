package rlock

import (
	"context"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewFencedLock returns the fenced lock called name: a reentrant lock whose acquisitions are numbered, see [Hold.Token]. It
// is Redisson's RFencedLock, and excludes the other locks under its name, which do not number theirs. For impossible
// names see [Client.NewLock].
//
// The counter is a key of its own, which never expires, so as never to begin again: a name that was used once costs some
// hundred bytes for ever. Fence a bounded number of names.
func (c *Client) NewFencedLock(name string) *Lock {
	return c.newLock(name, "fenced", exclusive, fenced{reentrant{c.wire, name, lua.NewExclusive(name, true)}})
}

// fenced is the kind of a lock that numbers its acquisitions.
type fenced struct{ reentrant }

func (k fenced) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.InspectFenced(context.Background(), redis, k.name)
}

func (k fenced) call(owner string) call {
	c := k.reentrant.call(owner)
	c.line.kind = "fenced"
	return c
}
