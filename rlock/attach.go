package rlock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/lua"
	"holdfast/watchdog"
)

// detachedPrefix begins the text of [Hold.Detach]. A later format has another number.
const detachedPrefix = "holdfast:1"

// detachable returns the constructor of the locks of a family, or nil if they cannot be detached.
func detachable(family string) func(*Client, string) *Lock {
	switch family {
	case "reentrant":
		return (*Client).lockOf
	case "non-reentrant":
		return (*Client).nonReentrantOf
	case "fair":
		return (*Client).fairOf
	case "non-reentrant fair":
		return (*Client).nonReentrantFairOf
	case "fenced":
		return (*Client).fencedOf
	}
	return nil
}

// Detach ends the hold without releasing the lock, and returns a text for [Client.Attach]. With
// that text, a later request or another process can continue the hold. Detach does not block and
// sends nothing. The client does not renew the lease meanwhile, and the lock is free when the lease
// ends. The rest of the lease may be short, even with [Watchdog], so call [Hold.Extend] first.
//
// The text is no secret, but everybody with the text can release the lock. The text has a space
// only if the name of the lock has a space.
//
// Detach returns [ErrNotHeld] if the hold was released before, and [ErrLost] if the lock was lost.
// For a lock with other nested holds, and for read-write locks, MultiLocks and RedLocks, Detach
// returns [ErrInvalid], and the hold lasts.
func (h *Hold) Detach() (detached string, err error) {
	defer wrap(&err, h.Name())
	l := h.of()
	if err := l.err(); err != nil {
		return "", ofEnded(err)
	}
	a, _ := l.acquisition.(*acquisition)
	if a == nil || detachable(a.lock.family) == nil {
		return "", invalid("only plain, fair, fenced, and non-reentrant locks can be detached")
	}
	return a.detachFrom(h)
}

// detachFrom implements [Hold.Detach].
func (a *acquisition) detachFrom(h *Hold) (string, error) {
	if time.Until(a.Deadline()) <= 0 {
		a.lose(watchdog.ErrExpired)
		return "", a.conclude()
	}
	a.mu.Lock()
	nested := len(a.levels) > 1
	begun := !nested && h.level.beginRelease()
	if begun {
		a.levels = nil // in the same step, because a new level would belong to another caller
		a.emptied(leave)
	}
	a.mu.Unlock()
	switch {
	case nested:
		return "", invalid("the owner holds the lock more than once; release the other holds first")
	case !begun:
		return "", ofEnded(ErrReleased)
	}
	a.endLeft()
	if err := a.lostError(); err != nil {
		h.level.end(err)
		return "", err
	}
	h.level.end(ErrReleased)
	h.level.trace.Load().released(nil, true)
	return strings.Join([]string{detachedPrefix, a.lock.family, strconv.FormatInt(a.fence, 10),
		a.owner, a.lock.name}, ":"), nil
}

// Attach continues a hold that [Hold.Detach] ended, and returns a new hold. The lock then has a new
// owner and lasts for lease, as if the lock had just been acquired with ctx. Attach ignores an
// owner in ctx. A fenced lock keeps its token.
//
// Attach blocks until Redis responds, ctx ends, or Options.CommandTimeout passes. A text works
// once. Attach returns [ErrLost] if the lease has ended meanwhile or if the text was used before,
// [ErrInvalid] for an invalid text or a lease that [Lock.Lock] rejects, and otherwise the errors of
// [Lock.TryLock] without a wait. If the outcome is unknown, the client releases the lock in the
// background.
func (c *Client) Attach(ctx context.Context, detached string, lease Lease,
) (hold *Hold, err error) {
	l, from, fence, err := c.parseDetached(detached)
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	return l.reported(ctx, NoWait, lease, func(ctx context.Context, cl *call) (*Hold, error) {
		return l.attach(ctx, cl, from, fence, lease)
	})
}

// attach implements [Client.Attach].
func (l *Lock) attach(ctx context.Context, cl *call, from string, fence int64, lease Lease,
) (*Hold, error) {
	at := attempt{call: cl}
	if err := at.start(ctx, l, NoWait, lease); err != nil {
		return nil, err
	}
	c := l.client
	defer c.group.Leave()
	at.call.acquires(Attached)
	at.fresh = new(acquisition)
	at.fresh.token = owner.New()
	at.session = &at.fresh.home
	c.sessions.OpenNew(at.session, sessionKey{l.family, l.name, at.fresh.token})
	defer at.session.Unlock()
	at.request.owner = c.newName(l.wakes)
	return at.attach(from, fence)
}

// parseDetached returns the lock, the owner and the fencing token in a text from [Hold.Detach].
func (c *Client) parseDetached(text string) (l *Lock, owner string, fence int64, err error) {
	rest, ok := strings.CutPrefix(text, detachedPrefix+":")
	parts := strings.SplitN(rest, ":", 5) // the owner also has a colon
	if !ok || len(parts) < 5 || detachable(parts[0]) == nil {
		return nil, "", 0, invalid("%q is not a text from Hold.Detach; pass that text unchanged", text)
	}
	fence, err = strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil, "", 0, invalid("%q is not a text from Hold.Detach: %w; pass that text unchanged",
			text, err)
	}
	return detachable(parts[0])(c, parts[4]), parts[2] + ":" + parts[3], fence, nil
}

// attach sends the command until Redis replies or the budget ends.
func (at *attempt) attach(from string, fence int64) (*Hold, error) {
	c, r := at.client, at.request
	command := func(ctx context.Context) (bool, error) {
		return lua.Transfer(ctx, c.redis, at.lock.name, from, r.owner, r.lease)
	}
	cu := at.cleanup(r, 0)
	undo := func(late bool) {
		left := cu
		left.retry = late
		c.cleaner.add(left)
	}
	cleanUp := func(held bool, err error) {
		if state := transport.StateOf(err); held || state > transport.NotExecuted {
			undo(state == transport.Abandoned)
		}
	}
	abandoned := false // an earlier try was abandoned
	sending := false
	defer func() {
		if sending { // a hook around rueidis has ended the call
			undo(abandoned)
		}
	}()
	for {
		at.call.asks()
		sent := time.Now()
		sending = true
		held, state, err := transport.Do(c.calls, transport.Acquire, &at.budget, command, cleanUp)
		sending = false
		deadline := watchdog.Deadline(sent, r.lease)
		switch {
		case err == nil && !held:
			return nil, &LostError{Lock: at.lock.name, Reason: watchdog.ErrGone}
		case err == nil && time.Until(deadline) <= 0:
			undo(abandoned)
			return nil, &LostError{Lock: at.lock.name, Reason: watchdog.ErrExpired}
		case err == nil:
			hold, err := at.begin(r.lease, deadline, fence)
			if hold == nil {
				err = at.fail(err)
			}
			return hold, err
		}
		at.failure = err
		left := state == transport.CallerLeft // the worker cleans up after its own command
		at.unknown = at.unknown || state > transport.NotExecuted && !left
		abandoned = abandoned || state == transport.Abandoned
		if !left && !c.transport.Permanent(err) && at.budget.Sleep(at.delay.Next(), nil, nil) {
			continue
		}
		if at.unknown {
			undo(abandoned || left)
		}
		return nil, at.ended()
	}
}
