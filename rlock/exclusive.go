package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/waitqueue"
	"holdfast/lua"
)

// NewLock returns the reentrant lock called name. It sends nothing. An impossible name is refused
// by the first use: the empty one and, on a cluster, one whose keys and channel would be in
// different slots.
func (c *Client) NewLock(name string) *Lock {
	return c.newLock(name, newExclusive(c, name, "lock", false))
}

// exclusive is the kind of a lock that one owner holds at a time: the plain lock itself, and the
// common part of others.
type exclusive struct {
	client *Client
	name   string
	of     string // the family
	keys   *lua.Exclusive
}

func newExclusive(c *Client, name, family string, fenced bool) exclusive {
	return exclusive{client: c, name: name, of: family, keys: lua.NewExclusive(name, fenced)}
}

func (k exclusive) family() string { return k.of }

func (k exclusive) mode() mode { return exclusiveMode }

func (k exclusive) beside() error { return nil }

func (k exclusive) acquire(
	ctx context.Context, redis rueidis.CoreClient, r request,
) (reply, error) {
	registration := ""
	if r.registers {
		registration = k.keys.Registration(r.owner, r.grantLease)
	}
	fence, ticket, holder, err := k.keys.Acquire(ctx, redis, r.owner, r.lease, registration)
	if registration != "" && needsNoHandOver(err) {
		refusal := err
		fence, ticket, holder, err = k.keys.Acquire(ctx, redis, r.owner, r.lease, "")
		k.client.transport.Forbid(refusal, err)
	}
	return reply{holder: holder, ticket: waitqueue.Ticket(ticket), fence: fence}, err
}

func (k exclusive) reenter(
	ctx context.Context, owner string, count int, lease time.Duration,
) (bool, error) {
	return lua.Reenter(ctx, k.client.redis, k.name, owner, count, lease)
}

func (k exclusive) release(
	ctx context.Context, owner string, count int, o offer,
) (lua.Released, error) {
	h := k.handOver(o.Streak)
	if next := o.Successor; next != nil {
		h.Successor, h.SuccessorFirst = k.keys.Registration(next.Owner, next.Lease), o.First
	}
	released, err := k.keys.Release(ctx, k.client.redis, owner, count, h)
	if needsNoHandOver(err) {
		return k.announce(ctx, owner, count, err)
	}
	return released, err
}

// announce sends a refused release once more, without a hand-over.
func (k exclusive) announce(
	ctx context.Context, owner string, count int, refusal error,
) (lua.Released, error) {
	h := lua.HandOver{Sharded: k.client.transport.Sharded()}
	released, err := k.keys.Release(ctx, k.client.redis, owner, count, h)
	k.client.transport.Forbid(refusal, err)
	return released, err
}

// needsNoHandOver reports whether a command may have been refused only because of what a hand-over
// needs. That is the server's clock, which some servers refuse to scripts, and keys of its own: an
// ACL may forbid them, they are elsewhere while a slot moves, and they are written even if nothing
// else is.
func needsNoHandOver(err error) bool {
	if err == nil {
		return false
	}
	var refusal *ServerError
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case "TRYAGAIN",
		"NOPERM",
		"MISCONF",
		"READONLY",
		"NOREPLICAS",
		"WRONGTYPE",
		"OOM",
		lua.NoCommand:
		return true
	}
	return false
}

// handOver returns to whom a release may give the lock.
func (k exclusive) handOver(s waitqueue.Streak) lua.HandOver {
	t := k.client.transport
	return lua.HandOver{Sharded: t.Sharded(), Others: t.GivesAway(),
		Streak: lua.Streak{Count: s.Count, Began: s.Began}}
}

func (k exclusive) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.keys.ForceUnlock(ctx, k.client.redis, k.client.transport.Sharded())
}

// frees returns true for every other kind whose lock has the key to itself.
func (k exclusive) frees(other kind, _ bool) bool { return !other.outlives() }

func (k exclusive) inspect(ctx context.Context) (lua.State, error) {
	return lua.Inspect(ctx, k.client.redis, k.name)
}

func (k exclusive) has(lua.Hold) bool { return true }

func (k exclusive) waiting(request) waiting {
	queue := queueName{k.of, k.name}
	return waiting{queue: queue, topic: queue.topic(k.keys.Channel()), registers: true}
}

func (k exclusive) queued() bool { return false }

func (k exclusive) handsOver() bool { return k.client.transport.HandsOver() }

func (k exclusive) lease(owner string) lua.Renewal {
	return lua.Renewal{Lock: k.name, Owner: owner}
}

func (k exclusive) outlives() bool { return false }

func (k exclusive) cleanUp(c *Client, batch []cleanup) bool {
	ctx, r := context.Background(), batch[0].request
	h := k.handOver(r.streak)
	h.Others = h.Others && r.streak.Count > 0 // otherwise its number of hand-overs is unknown
	if r.registers {
		h.Withdrawn = k.keys.Registration(r.owner, r.grantLease)
	}
	released, err := k.keys.Release(ctx, c.redis, r.owner, 0, h)
	if needsNoHandOver(err) {
		released, err = k.announce(ctx, r.owner, 0, err)
	}
	return c.cleaned(batch[0].lock, released, err)
}

func (k exclusive) batchSize() int { return 1 }

func (k exclusive) plain() plain { return k }

func (k exclusive) part(owner string, count int) lua.BatchPart {
	return lua.BatchPart{Lock: k.name, Channel: k.keys.Channel(), Owner: owner, Count: count}
}
