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
	return c.newLock(name, "fenced", exclusive, fenced{reentrant{wire: c.wire, name: name}})
}

// fenced is the kind of a lock that numbers its acquisitions.
type fenced struct{ reentrant }

func (k fenced) acquire(redis rueidis.CoreClient, b bid) (grant, error) {
	fence, holder, err := lua.AcquireFenced(context.Background(), redis, k.name, b.owner, 1, b.lease)
	return grant{holder: holder, fence: fence}, err
}

func (k fenced) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.InspectFenced(context.Background(), redis, k.name)
}

func (k fenced) call(string) call {
	return call{line: "fenced " + k.name, channel: lua.Channel(k.name)}
}
