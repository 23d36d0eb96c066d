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

// batch acquires several plain locks of one client and slot for an owner, all or none, with one
// script.
type batch struct {
	attempt
	parts []part
}

// part is a lock of a batch.
type part struct {
	lock    *Lock
	session *lockSession
	held    *acquisition // nil if the owner does not hold the lock yet
	owner   string       // the name of the owner in Redis
	count   int          // the number of levels after success
}

// trace reports the acquisition of a part to the tracer. The client does not report a failed batch,
// because the MultiLock continues without the batch.
func (p part) trace(at *attempt, h *Hold) {
	t := at.client.tracing
	if t == nil {
		return
	}
	lease := Lease(at.request.lease)
	if at.renew {
		lease = Watchdog
	}
	cl := t.begin(at.budget.Ctx, at.client, p.lock.traced(),
		AcquireStart{Since: at.sent, Wait: NoWait, Lease: lease})
	if p.held != nil {
		cl.Reenters()
	}
	cl.asks()
	cl.End(h, nil)
}

// tryBatch makes one attempt, and never waits in a queue.
func tryBatch(ctx context.Context, lease Lease, locks []*Lock) (holds []*Hold, err error) {
	defer func() {
		held := &HeldError{Lock: locks[0].name} // unless the error is about one of the locks
		errors.As(err, &held)
		wrap(&err, held.Lock)
	}()
	var bt batch
	if err := bt.start(ctx, locks[0], NoWait, lease); err != nil {
		return nil, err
	}
	c := bt.client
	defer c.group.Leave()
	token, _ := owner.From(ctx)
	if token == 0 {
		token = owner.New()
	}
	sessions := make([]*lockSession, len(locks))
	for i, l := range locks {
		sessions[i] = c.sessions.Open(sessionKey{l.family, l.name, token})
		defer sessions[i].Close()
	}
	if busy := session.LockAll(&bt.budget, sessions); busy >= 0 {
		bt.lock, bt.failure = locks[busy], errBusy
		return nil, bt.ended()
	}
	fresh := c.newName(owner.Plain)
	for i, l := range locks {
		s := sessions[i]
		defer s.Unlock()
		p := part{lock: l, session: s, owner: fresh, count: 1}
		if a := held(s, l.mode); a != nil {
			p.held, p.owner, p.count = a, a.owner, a.depth()+1
		}
		bt.parts = append(bt.parts, p)
	}
	if bt.exceedsMaxHold() {
		return nil, errTryAlone
	}
	if err := bt.ask(); err != nil {
		return nil, err
	}
	return bt.begin()
}

// errApart replaces the reply of a server that checks slots. The client does not send a script for
// several locks to such a server again.
var errApart = &ServerError{Class: ClassPermanent, Code: "CROSSSLOT",
	Message: "CROSSSLOT this server rejects commands for several locks"}

// errTryAlone makes a MultiLock acquire the locks one by one. A nested level must not make a lock
// last beyond Options.MaxHold, and a script gives all locks the same lease.
var errTryAlone = fmt.Errorf("%w: at the end of Options.MaxHold", ErrReleased)

// exceedsMaxHold reports whether the lease would make a held lock last longer than Options.MaxHold.
// Otherwise exceedsMaxHold notes the lease, because Redis may execute the command without a reply.
func (bt *batch) exceedsMaxHold() bool {
	for _, p := range bt.parts {
		if bt.renew && p.held != nil && !p.held.MayRenew() {
			return true
		}
	}
	for _, p := range bt.parts {
		if p.held != nil {
			p.held.MayLast(bt.request.lease)
			p.held.noTurns = true
		}
	}
	return false
}

// ask sends the script. ask returns nil if all locks were acquired.
func (bt *batch) ask() error {
	requests := make([]lua.BatchPart, len(bt.parts))
	for i, p := range bt.parts {
		requests[i] = lua.BatchPart{Lock: p.lock.name, Owner: p.owner, Count: p.count,
			Nested: p.held != nil}
	}
	type result struct {
		index  int
		holder *lua.Holder
	}
	c := bt.client
	names := make([]string, len(bt.parts))
	for i, p := range bt.parts {
		names[i] = p.lock.name
	}
	if !c.transport.Together(names) {
		return errApart
	}
	bt.sent = time.Now()
	sending := true
	defer func() {
		if sending { // a hook around rueidis has ended the call
			bt.undo(false)
		}
	}()
	command := func(ctx context.Context) (result, error) {
		index, holder, err := lua.AcquireBatch(ctx, c.redis, bt.request.lease, requests)
		return result{index, holder}, err
	}
	late := func(got result, err error) {
		if state := transport.StateOf(err); state > transport.NotExecuted || err == nil && got.index < 0 {
			bt.undo(state == transport.Abandoned)
		}
	}
	got, state, err := transport.Do(c.calls, transport.Acquire, &bt.budget, command, late)
	sending = false
	if state == transport.Unconfirmed || state == transport.Abandoned {
		bt.undo(state == transport.Abandoned)
	}
	if err != nil {
		c.transport.Rejected(err, names)
		bt.failure = err
		return bt.ended()
	}
	if got.index < 0 {
		return nil
	}
	p, holder := bt.parts[got.index], got.holder
	if holder == nil {
		p.held.lose(watchdog.ErrGone)
		return p.held.conclude()
	}
	return newHeldError(p.lock, *holder, c.options.Debug)
}

// undo schedules a cleanup of what may have been acquired. retry says that Redis may still execute
// the command later. For a lock held before, a count that is too high does no harm, because the
// last release ignores the count.
func (bt *batch) undo(retry bool) {
	for _, p := range bt.parts {
		if p.held == nil {
			bt.client.cleaner.add(cleanup{lock: p.lock, request: request{owner: p.owner},
				until: time.Now().Add(bt.request.lease), retry: retry})
		} else if p.held.lostError() != nil {
			bt.client.cleaner.add(p.held.cleanup())
		}
	}
}

// begin returns the holds of the acquired locks.
func (bt *batch) begin() (holds []*Hold, failure error) {
	deadline := watchdog.Deadline(bt.sent, bt.request.lease)
	if time.Until(deadline) <= 0 {
		bt.undo(false)
		return nil, fmt.Errorf(
			"%w: acquired, but the reply came after the lease of %v; use a longer lease",
			ErrOutcomeUnknown, bt.request.lease)
	}
	holds = make([]*Hold, 0, len(bt.parts))
	for _, p := range bt.parts {
		if p.held == nil {
			a := &acquisition{client: bt.client, lock: p.lock, session: p.session,
				token: p.session.Key().token, owner: p.owner}
			holds = append(holds, a.newHold(bt.budget.Ctx, &a.outermost, bt.renew))
			a.enter(deadline, bt.renew)
		} else if hold, err := p.held.push(bt.budget.Ctx, deadline, bt.renew); err == nil {
			holds = append(holds, hold)
		} else {
			// Before the reply, the lock was lost, or another goroutine of the owner released it.
			failure = err
		}
	}
	if bt.client.isClosing() { // Close may have missed the new holds
		failure = ErrClosed
	}
	if failure == nil {
		returned := false
		defer func() {
			if !returned { // the tracer has ended the call
				for _, h := range holds {
					h.abandon()
				}
			}
		}()
		for i, h := range holds {
			bt.parts[i].trace(&bt.attempt, h)
			bt.client.observe(h)
		}
		returned = true
		return holds, nil
	}
	for _, h := range holds {
		h.abandon()
	}
	return nil, failure
}

// partRelease is the release of a lock of a batch. left levels remain.
type partRelease struct {
	*acquisition
	left int
	err  *error
}

// releaseBatch releases holds of several plain locks of one client and slot, with one script.
// releaseBatch returns an error for each hold.
func releaseBatch(holds []*Hold) []error {
	errs := make([]error, len(holds))
	c := holds[0].level.acquisition.(*acquisition).client
	b := wait.NewBudget(context.Background(), nil, c.options.CommandTimeout)
	releases := make([]partRelease, 0, len(holds))
	// busy has the holds that AtLeast keeps, which need another command, and the holds whose
	// session another call of the owner has locked, perhaps for long. These holds come last,
	// because no session may stay locked while this call is blocked on another session.
	var busy []int
	for i, h := range holds {
		a := h.level.acquisition.(*acquisition)
		if !h.level.beginRelease() {
			errs[i] = ofEnded(ErrReleased)
		} else if a.keepsTaken() || !a.session.TryLock() {
			busy = append(busy, i)
		} else if left, _, err := a.releaseLevel(h.level); err == nil {
			releases = append(releases, partRelease{a, left, &errs[i]})
		} else {
			errs[i] = err
			a.session.Unlock()
		}
	}
	func() {
		defer wait.Together(len(busy), func(n int) { // even if a hook around rueidis ends sendAll
			h := holds[busy[n]]
			errs[busy[n]] = h.level.acquisition.Release(h)
		})
		c.sendAll(b, releases)
	}()
	for i, h := range holds {
		if !errors.Is(errs[i], ErrNotHeld) { // else another call releases the hold, and reports that
			h.level.trace.Load().released(errs[i], false)
		}
		wrap(&errs[i], h.Name())
	}
	return errs
}

// sendAll sends the releases and unlocks their sessions. If a hook around rueidis ends sendAll, the
// client cleans up in the background.
func (c *Client) sendAll(b *wait.Budget, releases []partRelease) {
	returned := false
	defer func() {
		for _, p := range releases {
			if p.left == 0 {
				if !returned {
					c.cleaner.add(p.cleanup())
				}
				p.cleanUpLate()
			}
			p.session.Unlock()
		}
	}()
	if len(releases) > 0 {
		c.sendBatch(b, releases)
	}
	returned = true
}

// sendBatch sends the releases. The caller has locked their sessions. If the batch gets no reply or
// is rejected, sendBatch sends the releases one by one. A single lock may be the reason, for
// example if the ACL forbids a key. While a slot moves, a command can reach each key but not all
// keys together.
func (c *Client) sendBatch(b *wait.Budget, releases []partRelease) {
	commands, names := make([]lua.BatchPart, len(releases)), make([]string, len(releases))
	for i, p := range releases {
		names[i] = p.lock.name
		commands[i] = lua.BatchPart{Lock: p.lock.name, Channel: p.lock.waiting.topic.Channel,
			Owner: p.owner, Count: p.left}
	}
	if !c.transport.Together(names) {
		for _, p := range releases {
			*p.err = p.send(b, p.left, nil)
		}
		return
	}
	type replies = []lua.BatchReleased
	release := func(ctx context.Context) (replies, error) {
		return lua.ReleaseBatch(ctx, c.redis, c.transport.Channels(), commands)
	}
	late := func(got replies, err error) {
		for i, p := range releases {
			refusal := err
			if err == nil {
				refusal = got[i].Err
			}
			p.handleLateReply(p.left, refusal)
		}
	}
	got, state, err := transport.Do(c.calls, transport.Release, b, release, late)
	c.transport.Rejected(err, names)
	for i, p := range releases {
		refusal := err
		if err == nil {
			refusal = got[i].Err
		}
		switch {
		case state == transport.CallerLeft:
			*p.err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			if p.left == 0 {
				p.step(giveUp)
			}
		case refusal == nil:
			*p.err = p.handleReply(got[i].Released, p.left, false)
		default:
			*p.err = p.send(b, p.left, refusal)
		}
	}
}
