package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// node is a plain lock as a part of a RedLock. What it acquires is an acquisition of its client
// like any other: renewed with the others, and ended by ForceUnlock and Close. The RedLock decides
// when to acquire and release it.
type node struct{ *Lock }

func (l *Lock) node() (hooks.Node, error) {
	switch {
	case l.kind.plain() == nil:
		return nil, fmt.Errorf(
			"%w: lock %q is not a plain one: "+
				"a queue, read holds and tokens mean nothing on a quorum: use Client.NewLock",
			ErrInvalid,
			l.name,
		)
	case l.invalid != nil:
		return nil, l.invalid
	}
	return node{l}, nil
}

func (n node) Client() string                { return n.client.id }
func (n node) Clustered() bool               { return n.client.transport.Clustered() }
func (n node) NewOwner() string              { return n.client.newOwner() }
func (n node) WatchdogLease() time.Duration  { return n.client.options.WatchdogLease }
func (n node) CommandTimeout() time.Duration { return n.client.options.CommandTimeout }
func (n node) Pool() *wait.Pool              { return n.client.pool }
func (n node) Closing() <-chan struct{}      { return n.client.closing }
func (n node) Permanent(err error) bool      { return n.client.transport.Permanent(err) }

func (n node) Acquire(owner string, lease time.Duration, d lua.Delay) (lua.Vote, error) {
	if err := n.client.transport.Ready(context.Background()); err != nil {
		return lua.Vote{}, err
	}
	sent := time.Now()
	vote, err := lua.AcquireVote(context.Background(), n.client.redis, n.name, owner, lease, d)
	n.answered(sent, err)
	return vote, transport.Unexplained(err)
}

func (n node) Reenter(owner string, count int, lease time.Duration) (bool, error) {
	sent := time.Now()
	held, err := n.kind.reenter(context.Background(), owner, count, lease)
	n.answered(sent, err)
	return held, transport.Unexplained(err)
}

func (n node) Extend(owner string, lease time.Duration) (bool, error) {
	sent := time.Now()
	held, err := lua.Renew(context.Background(), n.client.redis, lease,
		[]lua.Renewal{n.kind.lease(owner)})
	n.answered(sent, err)
	return err == nil && held[0], transport.Unexplained(err)
}

func (n node) Release(owner string) (lua.Released, error) {
	sent := time.Now()
	released, err := n.kind.release(context.Background(), owner, 0, offer{})
	n.answered(sent, err)
	if err == nil {
		n.client.refused(n.Lock, released.Refusal)
	}
	return released, transport.Unexplained(err)
}

// answered records how long a reply took. Errors are not recorded: they may be local, and quick.
func (n node) answered(sent time.Time, err error) {
	if err == nil {
		n.client.pool.Answered(time.Since(sent))
	}
}

func (n node) CleanUp(owner string, until time.Time) {
	n.client.cleaner.add(cleanup{lock: n.Lock, request: request{owner: owner}, until: until})
}

func (n node) Subscribe() *pubsub.Subscription {
	queue := queueName{"redlock", n.name}
	to := queue.topic(n.waiting.topic.Channel)
	// The client may be registered for grants, but a RedLock is not.
	if n.client.options.HandOver == HandOverToAll {
		to.Also = []string{lua.AnnouncementChannel(n.name)}
	}
	return n.client.transport.Subscribe(to)
}

func (n node) Warn(message string, details ...any) { n.client.warn(message, details...) }

func (n node) Hold(
	name string, as owner.Token, deadline time.Time, renew bool, p hooks.Part,
) hooks.NodeHold {
	c := n.client
	// A separate session: no other call ever uses it.
	s := c.sessions.Open(sessionKey{family: "node", lock: n.name, token: owner.New()})
	defer s.Close()
	a := &acquisition{client: c, lock: n.Lock, session: s, token: as, owner: name, part: p}
	a.begin(context.Background(), deadline, renew)
	select {
	case <-c.closing: // Close may have missed it
		a.finish()
		return nil
	default:
		return (*nodeHold)(a)
	}
}

// nodeHold is an acquisition as the RedLock sees it, which decides when it is released.
type nodeHold acquisition

func (nh *nodeHold) acquisition() *acquisition { return (*acquisition)(nh) }

func (nh *nodeHold) Deadline() time.Time { return nh.lease.Deadline() }

func (nh *nodeHold) Extend(deadline time.Time) { nh.client.watchdog.Extend(&nh.lease, deadline) }

func (nh *nodeHold) MayLast(lease time.Duration) { nh.acquisition().mayLast(lease) }

func (nh *nodeHold) SetRenew(renew bool) {
	if renew {
		nh.MayLast(nh.client.options.WatchdogLease)
	}
	nh.client.watchdog.SetRenew(&nh.lease, renew)
}

func (nh *nodeHold) Drop() { nh.acquisition().finish() }
