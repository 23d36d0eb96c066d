package rlock

import (
	"context"

	"holdfast/lua"
)

// NewFencedLock returns the fenced lock called name: a reentrant lock that numbers its
// acquisitions, see [Hold.Token]. It is Redisson's RFencedLock, and excludes the other locks under
// its name, which do not number theirs. For impossible names see [Client.NewLock].
//
// The counter is a separate key that never expires, because it must never restart: a name that was
// used once costs about a hundred bytes for ever. Fence a bounded number of names.
func (c *Client) NewFencedLock(name string) *Lock {
	return c.newLock(name, fenced{newExclusive(c, name, "fenced", true)})
}

// fenced is the kind of a lock that numbers its acquisitions.
type fenced struct{ exclusive }

func (k fenced) inspect(ctx context.Context) (lua.State, error) {
	return lua.InspectFenced(ctx, k.client.redis, k.name)
}

func (k fenced) plain() plain { return nil }
