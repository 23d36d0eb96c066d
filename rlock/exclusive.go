package rlock

import (
	"context"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// NewLock returns the reentrant lock with the given name. It sends nothing. The methods of the lock
// return [ErrInvalid] for an impossible name. Impossible names are the empty name, the name of a
// key or channel of another lock, and on a cluster a name whose keys would be in different slots.
func (c *Client) NewLock(name string) *Lock { return c.lockOf(c.options.mapped(name)) }

// lockOf returns the reentrant lock with a name in Redis.
func (c *Client) lockOf(name string) *Lock {
	return c.newLock(name, traits{family: "reentrant", handsOver: true, takesTurns: true,
		batched: true, wakes: owner.Plain, inspect: lua.Inspect}, newExclusive(c, name, "lock", false))
}

// exclusive is the kind of a lock with one owner at a time. It implements the plain lock, and is
// the common part of other kinds.
type exclusive struct {
	client  *Client
	name    string
	how     *waiting
	scripts *lua.Exclusive
}

func newExclusive(c *Client, name, queue string, fenced bool) *exclusive {
	scripts := lua.NewExclusive(name, fenced)
	how := queueName{queue, name}.waiting(scripts.Channel())
	how.registers = true
	return &exclusive{client: c, name: name, how: how, scripts: scripts}
}

func (k *exclusive) acquire(ctx context.Context, redis rueidis.CoreClient, r request,
) (reply, error) {
	registration := ""
	if r.registers {
		registration = k.scripts.Registration(r.owner, r.grantLease)
	}
	fence, ticket, holder, err := k.scripts.Acquire(ctx, redis, r.owner, r.lease, registration)
	if err != nil && registration != "" && refusesHandOver(err) {
		refusal := err
		fence, ticket, holder, err = k.scripts.Acquire(ctx, redis, r.owner, r.lease, "")
		k.client.transport.Forbid(refusal, err)
	}
	return reply{holder: holder, ticket: waitqueue.Ticket(ticket), fence: fence}, err
}

func (k *exclusive) release(ctx context.Context, owner string, count int, o offer,
) (lua.Released, error) {
	to := k.client.transport.HandOvers()
	h := lua.HandOver{Channels: to.Channels, Others: to.OtherClients,
		Streak: wire.Streak{Count: o.Streak.Count, Began: o.Streak.Began}}
	if next := o.Successor; next != nil {
		h.Successor, h.SuccessorFirst = k.scripts.Registration(next.Owner, next.Lease), o.First
	}
	released, err := k.scripts.Release(ctx, k.client.redis, owner, count, h)
	if err != nil && refusesHandOver(err) {
		return k.releaseAnnounced(ctx, owner, count, err)
	}
	return released, err
}

// releaseAnnounced sends a release again without a hand-over, because Redis may have rejected the
// hand-over only.
func (k *exclusive) releaseAnnounced(ctx context.Context, owner string, count int, refusal error,
) (lua.Released, error) {
	t := k.client.transport
	h := lua.HandOver{Channels: t.Channels()}
	released, err := k.scripts.Release(ctx, k.client.redis, owner, count, h)
	t.Forbid(refusal, err)
	return released, err
}

// refusesHandOver reports whether Redis may have rejected a command only because of the needs of a
// hand-over. A hand-over needs the clock of the server, which some servers deny to scripts. A
// hand-over also needs its own keys. An ACL may forbid these keys, and a moving slot may have put
// them on another node. The script writes them even if it writes nothing else.
func refusesHandOver(err error) bool {
	return rediserr.HasCode(err, "TRYAGAIN", "NOPERM", "MISCONF", "READONLY",
		"NOREPLICAS", "WRONGTYPE", "OOM", rediserr.NoCommand)
}

func (k *exclusive) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.scripts.ForceUnlock(ctx, k.client.redis, k.client.transport.Channels())
}

func (k *exclusive) cleanUp(batch []cleanup) (lua.Released, error) {
	r := batch[0].request
	to := k.client.transport.HandOvers()
	h := lua.HandOver{Channels: to.Channels,
		Others: to.OtherClients && r.streak.Count > 0, // otherwise the number of hand-overs is unknown
		Streak: wire.Streak{Count: r.streak.Count, Began: r.streak.Began}}
	if r.registers {
		h.Withdrawn = k.scripts.Registration(r.owner, r.grantLease)
	}
	return transport.Undo(k.client.calls, func(ctx context.Context) (lua.Released, error) {
		released, err := k.scripts.Release(ctx, k.client.redis, r.owner, 0, h)
		if err != nil && refusesHandOver(err) {
			return k.releaseAnnounced(ctx, r.owner, 0, err)
		}
		return released, err
	})
}

func (k *exclusive) waiting(string, bool) *waiting { return k.how }
