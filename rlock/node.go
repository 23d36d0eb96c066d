package rlock

import (
	"context"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/wire"
	"holdfast/lua"
	"holdfast/pubsub"
)

// node is a plain lock as a part of a RedLock. The RedLock acquires and releases the node. The
// client treats the acquisition of a node like any other acquisition, renews it, and ends it on
// ForceUnlock and Close.
type node struct{ *Lock }

func (l *Lock) node() (compose.Node, error) {
	if !l.batched {
		return nil, invalid("lock %q is not a plain lock, and a RedLock needs plain locks; "+
			"use Client.NewLock", l.name)
	}
	return node{l}, l.invalid
}

func (n node) Client() string                { return n.client.id }
func (n node) Clustered() bool               { return n.client.transport.Clustered() }
func (n node) NewOwner() string              { return n.client.newName(n.wakes) }
func (n node) WatchdogLease() time.Duration  { return n.client.options.WatchdogLease }
func (n node) CommandTimeout() time.Duration { return n.client.options.CommandTimeout }
func (n node) Pool() *wait.Pool              { return n.client.pool }
func (n node) Closing() <-chan struct{}      { return n.client.closing }
func (n node) Permanent(err error) bool      { return n.client.transport.Permanent(err) }
func (n node) Warn(text string, more ...any) { n.client.warn(text, more...) }

func (n node) Held(by lua.Holder) error { return newHeldError(n.Lock, by, n.client.options.Debug) }

func (n node) Acquire(b lua.Ballot) (lua.Vote, error) {
	var lost error
	vote, err := timed(n, transport.Acquire, func(ctx context.Context) (lua.Vote, error) {
		vote, err := b.Cast(ctx, n.client.redis, n.name)
		if vote.Already && lost != nil {
			// The server executed the first request, or another node is the same server.
			return lua.Vote{}, lost
		}
		if transport.Lost(err) {
			lost = err
		}
		return vote, err
	})
	if vote.Granted {
		n.client.transport.Wrote()
	}
	return vote, err
}

// Extend asks Redis for a new lease. Extend also sets the number of levels, unless levels is 0.
func (n node) Extend(owner string, levels int, lease time.Duration) (bool, error) {
	return timed(n, transport.Keep, func(ctx context.Context) (bool, error) {
		if levels > 0 {
			return lua.Reenter(ctx, n.client.redis, n.held(owner), levels, lease)
		}
		held, err := lua.Renew(ctx, n.client.redis, lease, []lua.Held{n.held(owner)})
		return err == nil && held[0], err
	})
}

func (n node) Release(owner string) (lua.Released, error) {
	released, err := timed(n, transport.Release, func(ctx context.Context) (lua.Released, error) {
		return n.kind.release(ctx, owner, 0, offer{})
	})
	n.client.reportRefusal(n.Lock, released.Refusal)
	return released, err
}

// timed sends a command, and records how long the reply took. timed ignores errors, because an
// error may be local.
func timed[T any](n node, kind transport.Kind, command func(context.Context) (T, error),
) (T, error) {
	return transport.DoWithoutCancel(n.client.calls, kind, func(ctx context.Context) (T, error) {
		sent := time.Now()
		reply, err := command(ctx)
		if err == nil {
			n.client.pool.Answered(time.Since(sent))
		}
		return reply, err
	})
}

func (n node) CleanUp(owner string, until time.Time) {
	n.client.cleaner.add(cleanup{lock: n.Lock, request: request{owner: owner}, until: until})
}

func (n node) Subscribe() *pubsub.Subscription {
	to := queueName{"redlock", n.name}.topic(n.waiting.topic.Channel)
	// The client may be registered for grants, but a RedLock is not.
	if n.client.options.HandOver == HandOverAnywhere {
		to.Also = []string{wire.AnnouncementChannel(n.name)}
	}
	return n.client.transport.Subscribe(to)
}

func (n node) CallSite() []uintptr { return n.client.here() }

func (n node) Hold(name string, as owner.Token, site []uintptr, deadline time.Time, p compose.Part,
) compose.NodeAcquisition {
	c := n.client
	a := &acquisition{client: c, lock: n.Lock, token: as, owner: name, part: p}
	a.session = &a.home // no other call finds this session
	c.sessions.OpenNew(a.session, sessionKey{family: "node", lock: n.name, token: as})
	a.session.Unlock()
	a.outermost.acquisition, a.outermost.owner, a.outermost.site = a, as, site
	a.enter(deadline, false)
	if c.isClosing() { // Close may have missed the acquisition
		a.Drop()
		return nil
	}
	return a
}

// Extended notes that Redis has extended the lock of a part.
func (a *acquisition) Extended(deadline time.Time) {
	a.client.watchdog.Extend(&a.watched, deadline)
}
