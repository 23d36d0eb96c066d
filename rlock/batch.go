package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// batch acquires several plain locks of one client and slot, for one owner, with one script: all or
// none.
type batch struct {
	locks []*Lock

	client *Client
	parts  []part
}

// part is one of these locks.
type part struct {
	lock    *Lock
	session *lockSession
	held    *acquisition // nil if the owner does not hold the lock yet
	owner   string       // its name in Redis
	count   int          // levels afterwards
}

// try makes one attempt. It never waits in a queue.
func (bt *batch) try(ctx context.Context, lease time.Duration) (holds []*Hold, err error) {
	c := bt.locks[0].client
	bt.client = c
	renew := lease == Watchdog
	defer func() { bt.named(&err) }()
	if lease, err = c.wholeLease(lease); err != nil {
		return nil, err
	}
	if !c.tasks.Enter() {
		return nil, ErrClosed
	}
	defer c.tasks.Leave()
	token, named := owner.From(ctx)
	if !named {
		token = owner.New()
	}
	b := wait.NewBudget(ctx, c.closing, c.options.CommandTimeout)
	defer b.Stop()
	if b.Err() != nil {
		return nil, notAsked(bt.locks[0], b)
	}
	sessions := make([]*lockSession, len(bt.locks))
	for i, l := range bt.locks {
		sessions[i] = c.sessions.Open(l.key(token))
		defer sessions[i].Close()
	}
	if busy := session.LockAll(b, sessions); busy >= 0 {
		return nil, notAsked(bt.locks[busy], b)
	}
	fresh := c.newOwner()
	for i, l := range bt.locks {
		s := sessions[i]
		defer s.Unlock()
		p := part{lock: l, session: s, owner: fresh, count: 1}
		if a := held(s, l.kind.mode()); a != nil {
			p.held, p.owner, p.count = a, a.owner, a.depth()+1
			a.mayLast(lease)
		}
		bt.parts = append(bt.parts, p)
	}
	sent, err := bt.ask(b, lease)
	if err != nil {
		return nil, err
	}
	return bt.begin(ctx, b, token, watchdog.Deadline(sent, lease), lease, renew)
}

// named adds the lock that an error is about; the first one if it is about the server.
func (bt *batch) named(err *error) {
	name := bt.locks[0].name
	var held *HeldError
	if errors.As(*err, &held) {
		name = held.Lock
	}
	wrap(err, name)
}

// notAsked returns why an attempt ended before it sent anything, while another call of the owner
// had the session of l locked.
func notAsked(l *Lock, b *wait.Budget) error {
	reason := b.Err()
	if errors.Is(reason, ErrClosed) {
		return ErrClosed
	}
	return &HeldError{Lock: l.name, cause: reason}
}

// ask sends the script. It returns when, if all locks were acquired, and an error otherwise.
func (bt *batch) ask(b *wait.Budget, lease time.Duration) (sent time.Time, err error) {
	requests := make([]lua.BatchPart, len(bt.parts))
	for i, p := range bt.parts {
		requests[i] = p.lock.kind.plain().part(p.owner, p.count)
		requests[i].Nested = p.held != nil
	}
	type answer struct {
		index  int
		holder *lua.Holder
	}
	sent = time.Now()
	got, state, err := transport.Do(bt.client.calls, b, func(ctx context.Context) (answer, error) {
		if err := bt.client.transport.Ready(ctx); err != nil {
			return answer{}, err
		}
		index, holder, err := lua.AcquireBatch(ctx, bt.client.redis, lease, requests)
		return answer{index, holder}, err
	}, func(got answer, err error) {
		if err == nil && got.index < 0 || err != nil && lua.ClassOf(err) == lua.Unknown {
			bt.undo(lease, false)
		}
	})
	switch state {
	case transport.Unconfirmed, transport.Abandoned:
		bt.undo(lease, state == transport.Abandoned)
		fallthrough
	case transport.Detached:
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		if state != transport.Unconfirmed {
			err = b.Because(err)
		}
		return sent, err
	case transport.Refused:
		return sent, err
	case transport.Answered, transport.NotSent:
	}
	if got.index < 0 {
		return sent, nil
	}
	p, holder := bt.parts[got.index], got.holder
	if holder == nil {
		p.held.lose(watchdog.ErrGone)
		return sent, p.held.conclude()
	}
	return sent, &HeldError{
		Lock:  p.lock.name,
		Owner: holder.Owner,
		TTL:   holder.TTL,
		Next:  holder.Next,
	}
}

// undo cleans up in the background what may have been acquired. retry says that the command may
// still be executed later. A count that is too high, for a lock held before, does no harm: the last
// release ignores it.
func (bt *batch) undo(lease time.Duration, retry bool) {
	for _, p := range bt.parts {
		if p.held == nil {
			bt.client.cleaner.add(cleanup{lock: p.lock, request: request{owner: p.owner},
				until: time.Now().Add(lease), retry: retry})
		} else if p.held.lostError() != nil {
			bt.client.cleaner.add(p.held.cleanup())
		}
	}
}

// begin returns the holds of what was acquired.
func (bt *batch) begin(ctx context.Context, b *wait.Budget, token owner.Token, deadline time.Time,
	lease time.Duration, renew bool,
) ([]*Hold, error) {
	if !time.Now().Before(deadline) {
		bt.undo(lease, false)
		return nil, fmt.Errorf(
			"%w: the locks were taken, but the answer took longer than the lease of %v",
			ErrOutcomeUnknown, lease)
	}
	holds := make([]*Hold, 0, len(bt.parts))
	var failure error
	for _, p := range bt.parts {
		if p.held == nil {
			a := &acquisition{
				client:  bt.client,
				lock:    p.lock,
				session: p.session,
				token:   token,
				owner:   p.owner,
			}
			holds = append(holds, a.begin(ctx, deadline, renew))
			continue
		}
		hold, err := p.held.push(ctx, deadline, renew)
		if err != nil {
			// It was lost, or released by another goroutine of the owner, before the reply arrived.
			failure = err
			continue
		}
		holds = append(holds, hold)
	}
	if b.Closing() { // Close may have missed them
		failure = ErrClosed
	}
	if failure == nil {
		return holds, nil
	}
	for _, h := range holds {
		h.claimRelease()
		a := h.acquisition.(*acquisition)
		if a.remove(h) == 0 {
			a.finish()
			bt.client.cleaner.add(a.cleanup())
		}
	}
	return nil, failure
}
