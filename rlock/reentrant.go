package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewLock returns the reentrant lock called name. It sends nothing, and an impossible name is refused by the first use: the
// empty one and, on a cluster, one whose keys and channel would be in different slots.
func (c *Client) NewLock(name string) *Lock {
	return c.newLock(name, "lock", exclusive, reentrant{c.wire, name, lua.NewExclusive(name, false)})
}

// reentrant is the kind of the plain lock.
type reentrant struct {
	wire *wire
	name string
	keys *lua.Exclusive
}

func (k reentrant) acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error) {
	place := ""
	if b.enlists {
		place = k.keys.Registration(b.owner, b.gift)
	}
	fence, ticket, holder, err := k.keys.Acquire(ctx, redis, b.owner, b.lease, place)
	if place != "" && needsNoPlaces(err) {
		refusal := err
		fence, ticket, holder, err = k.keys.Acquire(ctx, redis, b.owner, b.lease, "")
		k.wire.forbid(refusal, err)
	}
	return grant{holder: holder, ticket: ticket, fence: fence}, err
}

func (k reentrant) reenter(redis rueidis.CoreClient, owner string, count int, lease time.Duration) (bool, error) {
	return lua.Reenter(context.Background(), redis, k.name, owner, count, lease)
}

func (k reentrant) release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, to heir) (lua.Released, error) {
	p := k.passing()
	p.Streak = to.turns
	if to.owner != "" {
		p.Successor, p.SuccessorFirst = k.keys.Registration(to.owner, to.lease), to.first
	}
	return k.giveUp(ctx, redis, owner, count, p)
}

func (k reentrant) withdraw(redis rueidis.CoreClient, bids ...bid) (lua.Released, error) {
	b := bids[0]
	p := k.passing()
	p.Streak = b.turns
	p.Others = p.Others && b.turns.Count > 0 // it is announced if nobody knows how often it was passed on
	if b.enlists {
		p.Withdrawn = k.keys.Registration(b.owner, b.gift)
	}
	return k.giveUp(context.Background(), redis, b.owner, 0, p)
}

func (k reentrant) giveUp(ctx context.Context, redis rueidis.CoreClient, owner string, count int, p lua.HandOver) (lua.Released, error) {
	released, err := k.keys.Release(ctx, redis, owner, count, p)
	if needsNoPlaces(err) {
		refusal := err
		released, err = k.keys.Release(ctx, redis, owner, count, lua.HandOver{Sharded: p.Sharded})
		k.wire.forbid(refusal, err)
	}
	return released, err
}

// needsNoPlaces tells that a command was refused perhaps only because of what a hand-over needs: the clock of the server, which
// some refuse to scripts, and keys of its own, which an ACL from before may forbid, which are elsewhere while a slot moves, and
// which are written to when nothing else is.
func needsNoPlaces(err error) bool {
	if err == nil {
		return false
	}
	var refusal *ServerError
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case "TRYAGAIN", "NOPERM", "MISCONF", "READONLY", "NOREPLICAS", "WRONGTYPE", "OOM", lua.NoCommand:
		return true
	}
	return false
}

func (k reentrant) forceUnlock(redis rueidis.CoreClient) (lua.Released, error) {
	return lua.ForceUnlock(context.Background(), redis, k.name, k.announcement())
}

func (k reentrant) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.Inspect(context.Background(), redis, k.name)
}

func (k reentrant) claim(owner string) lua.Renewal { return lua.Renewal{Lock: k.name, Owner: owner} }

func (k reentrant) batch() int { return 1 }

func (k reentrant) queues() bool { return false }

func (k reentrant) passes() bool { return k.wire.handsOver() }

func (k reentrant) call(string) call {
	return call{line: lineName{"lock", k.name}, channel: k.keys.Channel(), places: true}
}

func (k reentrant) announcement() lua.Announcement {
	return lua.Announcement{Channel: k.keys.Channel(), Message: lua.Unlocked, Sharded: k.wire.isSharded()}
}

func (k reentrant) passing() lua.HandOver {
	return lua.HandOver{Sharded: k.wire.isSharded(), Others: k.wire.givesAway()}
}
