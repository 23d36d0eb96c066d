package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/crew"
	"holdfast/internal/owner"
	"holdfast/internal/seam"
	"holdfast/lua"
	"holdfast/pubsub"
)

// node is a plain lock as a part of a RedLock. What it takes is a holding of its client like any other: renewed with the
// others, ended by ForceUnlock and Close. When it is taken and released is up to the RedLock.
type node struct {
	*Lock
	reentrant reentrant
}

func (l *Lock) node() (seam.Node, error) {
	plain, ok := l.kind.(reentrant)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: lock %q is not a plain one: a queue, read holds and tokens mean nothing on a quorum: use Client.NewLock",
			ErrInvalid, l.name)
	case l.invalid != nil:
		return nil, l.invalid
	}
	return node{l, plain}, nil
}

func (n node) Client() string                { return n.client.id }
func (n node) Clustered() bool               { return n.client.wire.cluster != nil }
func (n node) NewOwner() string              { return n.client.newOwner() }
func (n node) WatchdogLease() time.Duration  { return n.client.options.WatchdogLease }
func (n node) CommandTimeout() time.Duration { return n.client.options.CommandTimeout }
func (n node) Crew() *crew.Crew              { return n.client.crew }
func (n node) Closing() <-chan struct{}      { return n.client.closing }
func (n node) Hopeless(err error) bool       { return n.client.hopeless(err) }

func (n node) Acquire(owner string, lease time.Duration, d lua.Delay) (lua.Vote, error) {
	if err := n.client.wire.ready(context.Background()); err != nil {
		return lua.Vote{}, err
	}
	sent := time.Now()
	vote, err := lua.AcquireVote(context.Background(), n.client.redis, n.name, owner, lease, d)
	n.answered(sent, err)
	return vote, unexplained(err)
}

func (n node) Reenter(owner string, count int, lease time.Duration) (bool, error) {
	sent := time.Now()
	held, err := n.reentrant.reenter(n.client.redis, owner, count, lease)
	n.answered(sent, err)
	return held, unexplained(err)
}

func (n node) Extend(owner string, lease time.Duration) (bool, error) {
	sent := time.Now()
	held, err := n.client.prolong(exclusive, lease, []lua.Renewal{n.reentrant.claim(owner)})
	n.answered(sent, err)
	return err == nil && held[0], unexplained(err)
}

func (n node) Release(owner string) (lua.Released, error) {
	sent := time.Now()
	released, err := n.reentrant.release(context.Background(), n.client.redis, owner, 0, heir{})
	n.answered(sent, err)
	if err == nil {
		n.client.refused(n.Lock, released.Refusal)
	}
	return released, unexplained(err)
}

// answered notes how long an answer took. An error may be of this side, and quick.
func (n node) answered(sent time.Time, err error) {
	if err == nil {
		n.client.crew.Answered(time.Since(sent))
	}
}

func (n node) Abandon(owner string, until time.Time) {
	n.client.janitor.add(leftover{lock: n.Lock, bid: bid{owner: owner}, until: until})
}

func (n node) Subscribe() *pubsub.Subscription {
	to := n.kind.call("")
	to.line.kind, to.places = "redlock", false
	if n.client.options.HandOver == HandOverToAll { // and this client may have places, but a RedLock has none
		to.also = []string{lua.AnnouncementChannel(n.name)}
	}
	return n.client.wire.subscribe(to)
}

func (n node) Warn(message string, details ...any) { n.client.warn(message, details...) }

func (n node) Hold(name string, as owner.Token, deadline time.Time, renew bool, p seam.Part) seam.NodeHold {
	c := n.client
	// A seat of its own: nothing else is ever asked from it.
	s := c.seats.enter(place{kind: "node", lock: n.name, token: owner.New()})
	defer s.leave()
	g := &holding{client: c, lock: n.Lock, seat: s, token: as, owner: name, part: p}
	g.begin(context.Background(), deadline, renew)
	select {
	case <-c.closing: // too late for Close to know of it
		g.forget()
		return nil
	default:
		return (*nodeHold)(g)
	}
}

// nodeHold is a holding as a RedLock sees it, which decides when it is released.
type nodeHold holding

func (h *nodeHold) holding() *holding { return (*holding)(h) }

func (h *nodeHold) Deadline() time.Time { return h.lease.Deadline() }

func (h *nodeHold) Extend(deadline time.Time) { h.holding().extend(deadline) }

func (h *nodeHold) MayLast(lease time.Duration) { h.holding().mayLast(lease) }

func (h *nodeHold) SetRenew(renew bool) {
	if renew {
		h.MayLast(h.client.options.WatchdogLease)
	}
	h.client.watchdog.SetRenew(&h.lease, renew)
}

func (h *nodeHold) LetGo() { h.holding().forget() }
