package rlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
	"holdfast/watchdog"
)

// This file has the way of an Unlock, from top to bottom: the session, the end of the level in this
// process, the command, and the reply. At the end are other ends, such as Leave.

// Release implements [Acquisition]. The level ends even with an error.
func (a *acquisition) Release(h *Hold) error {
	ctx := context.Background()
	if h.level.trace.Load() != nil {
		ctx = context.WithoutCancel(h.parent) // so that commands are traced as the hold's
	}
	var b wait.Budget
	b.Begin(ctx, nil, a.client.options.CommandTimeout)
	locked := a.session.Lock(&b)
	if locked {
		defer a.session.Unlock()
	}
	left, err := a.releaseLevel(h.level)
	if err != nil {
		return err
	}
	if left == 0 && (a.registered || a.late != nil) {
		defer a.cleanUpLate() // even if a hook around rueidis panics
	}
	if locked {
		return a.send(&b, left, nil)
	}
	if left == 0 {
		a.step(giveUp)
		a.client.cleaner.add(a.cleanup())
	}
	return errBusy
}

// releaseLevel ends a level in this process, and returns how many are left, or how it was lost.
func (a *acquisition) releaseLevel(level *level) (left int, err error) {
	c := a.client
	if time.Until(a.watched.Deadline()) <= 0 {
		err = a.loss(watchdog.ErrExpired)
		a.lose(watchdog.ErrExpired)
	}
	left, lost := a.remove(level, release)
	err = cmp.Or(lost, err)
	if left == 0 {
		if a.registered {
			c.releasing.Store(a.owner, nil) // until cleanUpLate; before unwatch: see granted
		}
		a.unwatch()
		if a.lock.sharesKey {
			a.endUntrusted()
		}
		if a.part != nil && err == nil { // Options.ReleaseOnClose releases it
			a.part.Ended(ErrClosed)
		}
		if err != nil {
			c.releasing.Delete(a.owner)
			c.losses.Remove(a.key(), a)
		}
	}
	if err != nil && errors.Is(err, watchdog.ErrExpired) {
		// The lease in Redis is not over yet: a lease of a day lasts for another 14 minutes.
		cu := a.cleanup()
		cu.until = time.Now().Add(max(time.Until(cu.until), c.options.CommandTimeout))
		c.cleaner.add(cu)
	}
	return left, err
}

// remove ends a level, and returns how many are left. The end of the last one is an event for the
// acquisition: release or leave. If the acquisition was lost before, remove also returns how.
func (a *acquisition) remove(l *level, last event) (left int, lost error) {
	var other *level
	a.mu.Lock()
	if len(a.levels) > 1 {
		other = a.overlapping(l)
	}
	a.levels = slices.DeleteFunc(a.levels, func(each *level) bool { return each == l })
	left = len(a.levels)
	if left > 0 {
		a.renewForLevels()
	} else {
		a.emptied(last)
	}
	if a.reason != nil && errors.Is(a.reason, ErrLost) {
		lost = a.reason
	}
	a.mu.Unlock()
	l.end(cmp.Or(lost, ErrReleased)) // the end of the acquisition may not have reached it yet
	if other != nil {
		a.reportOverlap(l, other)
	}
	return left, lost
}

// send sends the count that is left. The script of a plain lock is chosen in lua/exclusive.go, that
// of others in lua/fair.go and lua/readwrite.go. The caller has the session locked. before is the
// error of an earlier command, which may have been executed, or nil.
func (a *acquisition) send(b *wait.Budget, left int, before error) error {
	c, last, unknown := a.client, left == 0, transport.StateOf(before) > transport.Refused
	var delay wait.Backoff
	var reply lua.Released
	var err error
	for first := !unknown; ; first = false {
		// No successor is named again after an unconfirmed release: it asks instead. Nor is one while a
		// late request may take the lock again, because this release would then give that away, too.
		o, joined := a.offer(last && first && a.late == nil)
		var state transport.State
		reply, state, err = a.sendOnce(b, left, o, joined)
		if state == transport.Executed {
			return a.handleReply(reply, left, unknown)
		}
		if state != transport.Refused {
			unknown = true
			if last {
				a.releaseUnconfirmed()
			}
		}
		switch {
		case state == transport.Detached:
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, transport.NoReply(before))
		case c.transport.Permanent(err):
		case b.Sleep(delay.Next(), nil, nil):
			before = err
			continue
		default:
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			if last {
				c.cleaner.add(a.cleanup())
			}
		}
		if last {
			a.step(giveUp)
		}
		return err
	}
}

// offer picks a successor for a release, if it may have one. With joined set the caller leaves the
// client's tasks once it has sent the release; until then Close cannot finish.
func (a *acquisition) offer(may bool) (o offer, joined bool) {
	c, l := a.client, a.lock
	if !may || !l.handsOver || !c.queues.Has(l.waiting.queue) {
		return offer{Streak: a.streak}, false
	}
	here, away := c.transport.HandsOver()
	// When the client closes, its waiters are about to leave.
	if !here || c.isClosing() || !c.group.Join() {
		return offer{Streak: a.streak}, false
	}
	return c.queues.Offer(l.waiting.queue, a.streak, l.waiting.registers && away), true
}

// sendOnce sends the release once. It tells the successor what became of it, even if a hook around
// rueidis panics or ends the goroutine; then what is left is cleaned up in the background.
func (a *acquisition) sendOnce(b *wait.Budget, left int, o offer, joined bool,
) (reply lua.Released, state transport.State, err error) {
	c, sent, returned := a.client, time.Now(), false
	defer func() {
		if !returned {
			a.settle(o, sent, reply, transport.Unconfirmed)
			if left == 0 {
				a.releaseUnconfirmed()
				c.cleaner.add(a.cleanup())
				a.step(giveUp)
			}
		}
		if joined {
			c.group.Leave() // a worker is a task of its own
		}
	}()
	if call := c.calls.Begin(b, sent); call != nil {
		reply, state, err = a.sendDirectly(call, left, o)
		if state != transport.NotSent {
			a.settle(o, sent, reply, state)
			returned = true
			return reply, state, err
		}
	}
	reply, state, err = a.detach(b, left, o)
	returned = true
	return reply, state, err
}

// sendDirectly sends the release and ends its call.
func (a *acquisition) sendDirectly(call *transport.Call, left int, o offer,
) (reply lua.Released, state transport.State, err error) {
	err = transport.ErrThrown
	defer func() { state, err = call.End(err) }()
	reply, err = a.lock.kind.release(call, a.owner, left, o)
	return reply, state, err
}

// settle tells the successor of a release, if there is one, what became of it.
func (a *acquisition) settle(o offer, sent time.Time, r lua.Released, state transport.State) {
	if o.Successor == nil {
		return
	}
	outcome := waitqueue.Release{Outcome: waitqueue.ToAll, Sent: sent, Fence: r.Fence,
		Ticket: waitqueue.Ticket(r.Ticket), Began: r.Began, Late: state == transport.Abandoned}
	switch {
	case state == transport.Unconfirmed, state == transport.Abandoned:
		outcome.Outcome = waitqueue.Uncertain
	case state == transport.Refused, !r.Held, r.Refusal != "":
		outcome.Outcome = waitqueue.ToNobody
	case r.To == lua.Successor:
		outcome.Outcome = waitqueue.ToSuccessor
	case r.Ticket != 0:
		outcome.Outcome = waitqueue.SuccessorRegistered
	}
	next := o.Successor
	if o.Settle(outcome) { // the successor has left
		a.client.cleaner.add(cleanup{lock: a.lock, retry: outcome.Late,
			until: time.Now().Add(max(next.Lease, registrationKept)),
			request: request{owner: next.Owner, grantLease: next.Lease, registers: true,
				streak: o.After(sent, r.Began)}})
	}
}

// handleReply handles the reply to a release.
func (a *acquisition) handleReply(r lua.Released, left int, unknown bool) error {
	// Redis may find nothing because an earlier command, whose reply was lost, was the release: our
	// lease has not ended yet. A command that leaves levels behind does not remove the lock.
	earlier := left == 0 && unknown && time.Until(a.watched.Deadline()) > 0
	if r.Held || earlier {
		if r.Refusal != "" {
			a.client.reportRefusal(a.lock, r.Refusal)
		}
		if r.Classic {
			a.client.reportClassic(a.lock)
		}
		if left == 0 {
			a.step(confirm)
			if a.lock.sharesKey {
				a.endReads(r)
			}
		}
		return nil
	}
	a.lose(watchdog.ErrGone)
	if err := a.lostError(); err != nil {
		return err
	}
	// The last level has ended as released, so only its caller hears of the loss.
	err := a.loss(watchdog.ErrGone)
	if left == 0 {
		a.step(lose)
	}
	a.report(err)
	return err
}

// reportRefusal logs, once per client, that a release was not announced.
func (c *Client) reportRefusal(l *Lock, refusal string) {
	if refusal != "" && c.publishRefused.CompareAndSwap(false, true) {
		c.warn("holdfast: lock released, but Redis rejected the message to the waiters, so they "+
			"notice up to 5 s late; grant this channel in the ACL",
			"lock", l.name, "channel", l.waiting.topic.Channel, "refusal", refusal)
	}
}

// reportClassic logs, once per client, that the release was also announced on a classic channel.
func (c *Client) reportClassic(l *Lock) {
	if c.classic.CompareAndSwap(false, true) {
		c.log.tell(func() {
			c.options.Logger.Info("holdfast: another client waits on a classic channel, as Redisson "+
				"before 3.28 and clients with PubSubClassic do, so releases send a message to every "+
				"node of the cluster", "lock", l.name, "channel", l.waiting.topic.Channel)
		})
	}
}

// The rest is for a caller that leaves before the reply, and for other ends than by Unlock.

// detach sends the release from a worker, so that the caller can leave at any time.
func (a *acquisition) detach(b *wait.Budget, left int, o offer,
) (lua.Released, transport.State, error) {
	var sent time.Time // of the last try: a worker sends it again if its dial was ended
	r, state, err := transport.Detach(a.client.calls, transport.Release, b, a,
		func(a *acquisition, ctx context.Context) (lua.Released, error) {
			sent = time.Now()
			return a.lock.kind.release(ctx, a.owner, left, o)
		}, func(a *acquisition, r lua.Released, err error) {
			a.settle(o, sent, r, transport.StateOf(err))
			a.handleLateReply(left, err)
		})
	if state != transport.Detached {
		a.settle(o, sent, r, state)
	}
	return r, state, err
}

// handleLateReply handles the reply to a release whose caller has left.
func (a *acquisition) handleLateReply(left int, err error) {
	switch {
	case left > 0:
	case err != nil:
		a.client.cleaner.add(a.cleanup())
	default:
		a.step(confirm)
		if a.lock.mode == sharedMode {
			confirmRelease(a.session, a.owner)
		}
	}
}

// renews reports whether a level asks for the watchdog. It is called with mu held.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.renew })
}

// renewForLevels makes the watchdog renew if a level asks for it. It is called with mu held: a
// level that is added afterwards may renew.
func (a *acquisition) renewForLevels() { a.client.watchdog.SetRenew(&a.watched, a.renews()) }

// releaseWhole releases all levels whose release has not begun.
func (a *acquisition) releaseWhole() error {
	level := a.beginInnermost()
	if level == nil {
		return nil
	}
	for outer := a.beginInnermost(); outer != nil; outer = a.beginInnermost() {
		_, _ = a.remove(level, release)
		level.trace.Load().releasedByClose(nil)
		level = outer
	}
	err := a.Release(level.without())
	level.trace.Load().releasedByClose(err)
	return err
}

// abandon releases a hold that its caller does not get, because a tracer panicked or ended the
// goroutine. h may be nil. It calls no foreign code, and does not block.
func (h *Hold) abandon() {
	if h == nil || !h.level.beginRelease() {
		return
	}
	a := h.level.acquisition.(*acquisition)
	if left, _ := a.remove(h.level, release); left == 0 {
		a.Drop()
		a.client.cleaner.add(a.cleanup())
	}
}

// Drop ends an acquisition with its levels, in this process only.
func (a *acquisition) Drop() {
	a.unwatch()
	a.leaveSession() // a call that learns of the end must not find the name that is being released
	a.end(release, ErrReleased)
	if a.lock.sharesKey {
		a.endUntrusted()
	}
}

// Leave ends the hold without releasing the lock. The lock becomes free when its lease ends. Leave
// is for leases that should run out. For example, to run a job once a minute, acquire a lock with a
// lease of a minute and leave the hold.
//
// Leave does not block and sends nothing. The hold ends with [ErrReleased]. The client does not log
// the end of the lease. If the hold has ended before, Leave does nothing.
//
// Only the last of several nested holds leaves the lock. The other holds end as with Unlock. The
// watchdog stops renewing the lease, so a lock with [Watchdog] lasts for at most
// Options.WatchdogLease.
func (h *Hold) Leave() {
	l := h.of()
	if !l.beginRelease() {
		return
	}
	if a, leaves := l.acquisition.(leaver); leaves {
		a.Leave(h)
	}
	l.end(ErrReleased)
	l.trace.Load().released(nil, true)
}

// leaver is an [Acquisition] that can be left. Without it, Leave ends the hold in this process.
type leaver interface {
	// Leave ends the level that h stands for. With the last level it ends the acquisition, without
	// a command. It is called once for each hold, instead of Release.
	Leave(h *Hold)
}

// Leave implements [Hold.Leave].
func (a *acquisition) Leave(h *Hold) {
	if left, _ := a.remove(h.level, leave); left == 0 {
		a.endLeft()
	}
}

// endLeft ends an acquisition whose last level was left.
//
// An earlier request of the owner may still be under way (a.late), under the same name:
//
//   - While the lock is left, it finds the owner's own lock, and may make that last longer. It is
//     not cleaned up yet: a release would free the lock that was meant to stay, or that Attach is
//     about to take over.
//   - Once the lease is over, it takes the free lock for a whole lease, which nobody holds.
//   - If another owner has the lock by then, it registers this one, and the next release grants it
//     the lock.
//
// So the clean-up begins when the lease is over, and goes on for as long as after a release. The
// last case may come earlier if the lock was attached and released meanwhile: then the lock may
// stay granted to nobody until the left lease would have ended. A registered owner that acquired
// the lock by asking may still get a grant message about the left lock. The client ignores that
// message until then. It cleans up after any other grant.
func (a *acquisition) endLeft() {
	c, cu := a.client, a.cleanup()
	// In Redis the lease ends later than here: by the drift of all of it, and by the time that the
	// command took to get there.
	whole := time.Until(a.watched.Deadline())
	if a.late != nil {
		whole = max(whole, a.late.lease)
	}
	over := a.watched.Deadline().Add(watchdog.Drift(whole))
	if cu.until.After(over) {
		over = cu.until
	}
	over = over.Add(min(c.options.CommandTimeout, closeTimeout))
	for last := c.leftUntil.Load(); last == nil || last.Before(over); last = c.leftUntil.Load() {
		if c.leftUntil.CompareAndSwap(last, &over) { // Close leaves who has left it
			break
		}
	}
	if a.registered {
		c.releasing.Store(a.owner, nil)
		time.AfterFunc(time.Until(over), func() { c.releasing.Delete(a.owner) })
	}
	if a.late != nil {
		lasts := max(a.late.lasts(a.lock, 0), c.options.WatchdogLease)
		cu.request, cu.from, cu.until, cu.retry = *a.late, over, over.Add(lasts), true
		c.cleaner.add(cu)
	}
	a.unwatch()
	c.losses.Remove(a.key(), a) // perhaps it was lost before
	if a.lock.sharesKey {
		a.endUntrusted()
	}
}
