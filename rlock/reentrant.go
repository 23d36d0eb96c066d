package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewLock returns the reentrant lock called name. It sends nothing, and an impossible name is refused by the first use: the
// empty one and, on a cluster, one whose keys and channel would be in different slots.
func (c *Client) NewLock(name string) *Lock {
	return c.newLock(name, "lock", exclusive, reentrant{wire: c.wire, name: name})
}

// reentrant is the kind of the plain lock.
type reentrant struct {
	wire *wire
	name string
}

func (k reentrant) acquire(redis rueidis.CoreClient, b bid) (grant, error) {
	holder, err := lua.Acquire(context.Background(), redis, k.name, b.owner, 1, b.lease)
	return grant{holder: holder}, err
}

func (k reentrant) reenter(redis rueidis.CoreClient, owner string, count int, lease time.Duration) (bool, error) {
	return lua.Reenter(context.Background(), redis, k.name, owner, count, lease)
}

func (k reentrant) release(redis rueidis.CoreClient, owner string, count int) (lua.Released, error) {
	return lua.Release(context.Background(), redis, k.name, owner, count, k.announcement())
}

func (k reentrant) withdraw(redis rueidis.CoreClient, b bid) (lua.Released, error) {
	return k.release(redis, b.owner, 0)
}

func (k reentrant) forceUnlock(redis rueidis.CoreClient) (lua.Released, error) {
	return lua.ForceUnlock(context.Background(), redis, k.name, k.announcement())
}

func (k reentrant) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.Inspect(context.Background(), redis, k.name)
}

func (k reentrant) claim(owner string) lua.Claim { return lua.Claim{Lock: k.name, Owner: owner} }

func (k reentrant) queues() bool { return false }

func (k reentrant) call(string) call {
	return call{line: "lock " + k.name, channel: lua.Channel(k.name)}
}

func (k reentrant) announcement() lua.Announcement {
	return lua.Announcement{Channel: lua.Channel(k.name), Message: lua.Unlocked, Sharded: k.wire.isSharded()}
}
