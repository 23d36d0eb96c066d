package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/owner"
	"holdfast/lua"
	"holdfast/watchdog"
)

// together takes several plain locks of one client and slot, for one owner, with one script: all or none.
type together struct {
	locks []*Lock

	client *Client
	parts  []part
}

// part is one of the locks.
type part struct {
	lock  *Lock
	seat  *seat
	held  *holding // nil if the owner does not hold it yet
	owner string   // in Redis
	count int      // levels to have afterwards
}

// try makes one attempt. It does not stand in line: that would be waiting.
func (t *together) try(ctx context.Context, lease time.Duration) (holds []*Hold, err error) {
	c := t.locks[0].client
	t.client = c
	renew := lease == Watchdog
	if renew {
		lease = c.options.WatchdogLease
	}
	defer func() { t.named(&err) }()
	if lease, err = wholeLease(lease); err != nil {
		return nil, err
	}
	if !c.tasks.enter() {
		return nil, ErrClosed
	}
	defer c.tasks.leave()
	token, named := owner.From(ctx)
	if !named {
		token = owner.New()
	}
	p := c.patience(ctx, c.options.CommandTimeout)
	defer p.stop()
	if p.reason() != nil {
		return nil, noTurnTo(t.locks[0], p)
	}
	fresh := c.newOwner()
	seats := make([]*seat, len(t.locks))
	for i, l := range t.locks {
		seats[i] = c.seats.enter(l.place(token))
		defer seats[i].leave()
	}
	if busy := claimAll(seats, p); busy >= 0 {
		return nil, noTurnTo(t.locks[busy], p)
	}
	for i, l := range t.locks {
		s := seats[i]
		defer s.pass()
		taking := part{lock: l, seat: s, owner: fresh, count: 1}
		if h := s.held(exclusive); h != nil {
			taking.held, taking.owner, taking.count = h, h.owner, h.depth()+1
			h.mayLast(lease)
		}
		t.parts = append(t.parts, taking)
	}
	sent, err := t.ask(p, lease)
	if err != nil {
		return nil, err
	}
	return t.begin(ctx, p, token, watchdog.Deadline(sent, lease), lease, renew)
}

// claimAll claims the turns at all seats, and has none while it waits for one: another call of the same owner may have that
// for as long as it waits for its lock, and who is to release or extend another of the locks must not wait for that. It returns
// the index of the seat whose turn did not come, or -1.
func claimAll(seats []*seat, p *patience) (busy int) {
	for first := 0; seats[first].claim(p); first = busy {
		busy = -1
		for i, s := range seats {
			if i != first && !s.tryClaim() {
				busy = i
				break
			}
		}
		if busy < 0 {
			return -1
		}
		for i, s := range seats[:busy] {
			if i != first {
				s.pass()
			}
		}
		seats[first].pass()
	}
	return max(busy, 0)
}

// named names the lock that an error is about; any of them if it is about the server.
func (t *together) named(err *error) {
	name := t.locks[0].name
	var held *HeldError
	if errors.As(*err, &held) {
		name = held.Lock
	}
	wrap(err, name)
}

// noTurnTo says why an attempt ended before anything was asked: while another call of the same owner was at that lock.
func noTurnTo(l *Lock, p *patience) error {
	reason := p.reason()
	if errors.Is(reason, ErrClosed) {
		return ErrClosed
	}
	return &HeldError{Lock: l.name, cause: reason}
}

// ask sends the script, and returns when, if everything was taken.
func (t *together) ask(p *patience, lease time.Duration) (sent time.Time, err error) {
	takings := make([]lua.BatchRequest, len(t.parts))
	for i, of := range t.parts {
		takings[i] = lua.BatchRequest{Lock: of.lock.name, Owner: of.owner, Count: of.count, Nested: of.held != nil}
	}
	type answer struct {
		index  int
		holder *lua.Holder
	}
	sent = time.Now()
	got, left, err := await(t.client, p, func() (answer, error) {
		if err := t.client.wire.ready(context.Background()); err != nil {
			return answer{}, err
		}
		index, holder, err := lua.AcquireBatch(context.Background(), t.client.redis, lease, takings)
		return answer{index, holder}, err
	}, func(got answer, err error) {
		if err == nil && got.index < 0 || err != nil && lua.ClassOf(err) == lua.Unknown {
			t.undo(lease)
		}
	})
	switch {
	case left:
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, errNoAnswer)
		if reason := p.reason(); reason != nil {
			err = fmt.Errorf("%w: %w", reason, err)
		}
		return sent, err
	case err != nil && lua.ClassOf(err) == lua.Unknown:
		t.undo(lease)
		return sent, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	case err != nil:
		return sent, err
	case got.index < 0:
		return sent, nil
	}
	of := t.parts[got.index]
	if got.holder == nil {
		of.held.lost(watchdog.ErrGone)
		return sent, of.held.conclude()
	}
	holder := got.holder
	return sent, &HeldError{Lock: of.lock.name, Owner: holder.Owner, TTL: holder.TTL, Next: holder.Next}
}

// undo has what may have been taken released in the background. A count too high, of what was held already, does no harm:
// the last release ignores it.
func (t *together) undo(lease time.Duration) {
	for _, of := range t.parts {
		if of.held == nil {
			t.client.janitor.add(leftover{lock: of.lock, bid: bid{owner: of.owner}, until: time.Now().Add(lease)})
		} else if of.held.lostError() != nil {
			t.client.janitor.add(of.held.leftover())
		}
	}
}

// begin makes the holds of what was taken.
func (t *together) begin(ctx context.Context, p *patience, token owner.Token, deadline time.Time, lease time.Duration, renew bool) ([]*Hold, error) {
	if !time.Now().Before(deadline) {
		t.undo(lease)
		return nil, fmt.Errorf("%w: the locks were taken, but the answer took longer than the lease of %v", ErrOutcomeUnknown, lease)
	}
	holds := make([]*Hold, 0, len(t.parts))
	var failure error
	for _, of := range t.parts {
		if of.held == nil {
			g := &holding{client: t.client, lock: of.lock, seat: of.seat, token: token, owner: of.owner}
			holds = append(holds, g.begin(ctx, deadline, renew))
			continue
		}
		hold, err := of.held.push(ctx, deadline, renew)
		if err != nil {
			failure = err // lost, or released by a goroutine that shares the owner, while the answer was on its way
			continue
		}
		holds = append(holds, hold)
	}
	select {
	case <-p.closing: // too late for Close to know of them
		failure = ErrClosed
	default:
	}
	if failure == nil {
		return holds, nil
	}
	for _, h := range holds {
		h.leave()
		g := h.tenure.(*holding)
		if g.remove([]*Hold{h}) == 0 {
			g.forget()
			t.client.janitor.add(g.leftover())
		}
	}
	return nil, failure
}
