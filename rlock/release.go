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

// This file follows an Unlock from top to bottom: the session, the end of the level in this
// process, the command, and the reply. Other ends, such as Leave, come last.

// Release implements [Acquisition]. The level ends even if Release returns an error.
func (a *acquisition) Release(h *Hold) error {
	ctx := context.Background()
	if h.level.trace.Load() != nil {
		ctx = context.WithoutCancel(h.parent) // so that commands are traced as commands of the hold
	}
	var b wait.Budget
	b.Begin(ctx, nil, a.client.options.CommandTimeout)
	locked := a.session.Lock(&b)
	if locked {
		defer a.session.Unlock()
	}
	left, watched, err := a.releaseLevel(h.level)
	if err != nil {
		return err
	}
	if left == 0 && locked && watched && a.awaited() && a.passOn() {
		return nil
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

// releaseLevel ends a level in this process. releaseLevel returns how many levels are left, or why
// the lock was lost. watched is set if the release of the last level has ended the watch, and no
// loss did.
func (a *acquisition) releaseLevel(level *level) (left int, watched bool, err error) {
	c := a.client
	if time.Until(a.watched.Deadline()) <= 0 {
		err = a.loss(watchdog.ErrExpired)
		a.lose(watchdog.ErrExpired)
	}
	left, lost := a.remove(level, release)
	err = cmp.Or(lost, err)
	if left == 0 {
		if a.registered {
			c.releasing.Store(a.owner, nil) // until cleanUpLate; before unwatch, see granted
		}
		watched = a.unwatch()
		if a.lock.sharesKey {
			a.endUntrusted()
		}
		if a.part != nil && err == nil { // Options.ReleaseOnClose releases the part
			a.part.Ended(ErrClosed)
		}
		if err != nil {
			c.releasing.Delete(a.owner)
			c.losses.Remove(a.key(), a)
		}
	}
	if err != nil && errors.Is(err, watchdog.ErrExpired) {
		// The lease in Redis is not over yet. For example, a lease of a day lasts for another 14 minutes.
		cu := a.cleanup()
		cu.until = time.Now().Add(max(time.Until(cu.until), c.options.CommandTimeout))
		c.cleaner.add(cu)
	}
	return left, watched, err
}

// remove ends a level, and returns how many levels are left. The end of the last level is the event
// last for the acquisition, release or leave. If the acquisition was lost before, remove also
// returns the loss.
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
	l.end(cmp.Or(lost, ErrReleased)) // the end of the acquisition may not have reached the level yet
	if other != nil {
		a.reportOverlap(l, other)
	}
	return left, lost
}

// send sends the remaining count. The script of a plain lock is chosen in lua/exclusive.go, and the
// scripts of other kinds in lua/fair.go and lua/readwrite.go. The caller has locked the session.
// before is the error of an earlier command that Redis may have executed, or nil.
func (a *acquisition) send(b *wait.Budget, left int, before error) error {
	c, last := a.client, left == 0
	unknown := before != nil && transport.StateOf(before) > transport.NotExecuted
	var delay wait.Backoff
	var reply lua.Released
	var err error
	for first := !unknown; ; first = false {
		// Only the first try names a successor. If the try fails, the successor asks instead. While a
		// late request may take the lock again, the first try names no successor either, because the
		// release would also give that lock away.
		o, joined := offer{Streak: a.streak}, false
		if last && first && a.late == nil && a.awaited() && !a.keepsTaken() {
			o, joined = a.offer()
		}
		var state transport.State
		reply, state, err = a.sendOnce(b, left, o, joined)
		if state == transport.Executed {
			return a.handleReply(reply, left, unknown)
		}
		if state != transport.NotExecuted {
			unknown = true
			if last {
				a.releaseUnconfirmed()
			}
		}
		switch {
		case state == transport.CallerLeft:
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

// awaited reports whether a caller of this process may wait for the lock, and a release may give it
// the lock.
func (a *acquisition) awaited() bool {
	return a.lock.handsOver && a.client.queues.Has(a.lock.waiting.queue)
}

// offer picks a successor for a release. If joined is true, the caller calls group.Leave once the
// release is sent, so that Close waits for the release.
func (a *acquisition) offer() (o offer, joined bool) {
	c, l := a.client, a.lock
	to := c.transport.HandOvers()
	// When the client closes, its waiters are about to leave.
	if !to.ThisClient || c.isClosing() || !c.group.Join() {
		return offer{Streak: a.streak}, false
	}
	return c.queues.Offer(l.waiting.queue, a.streak, l.waiting.registers && to.OtherClients), true
}

// sendOnce sends the release once, and reports the outcome to the successor. If a hook around
// rueidis panics or ends the goroutine, sendOnce still reports to the successor, and the client
// cleans up in the background.
func (a *acquisition) sendOnce(b *wait.Budget, left int, o offer, joined bool,
) (reply lua.Released, state transport.State, err error) {
	c, sent, returned := a.client, time.Now(), false
	defer func() {
		if !returned {
			state = transport.Unconfirmed
		}
		if o.Successor != nil && state != transport.CallerLeft {
			a.settle(o, sent, reply, state)
		}
		if !returned && left == 0 {
			a.releaseUnconfirmed()
			c.cleaner.add(a.cleanup())
			a.step(giveUp)
		}
		if joined {
			c.group.Leave() // a worker is a separate task
		}
	}()
	if call := c.calls.Begin(b, sent, a.lock.name); call != nil {
		reply, state, err = transport.Send(call, func(ctx context.Context) (lua.Released, error) {
			return a.command(ctx, left, o)
		})
		if state != transport.NotSent {
			returned = true
			return reply, state, err
		}
	}
	reply, sent, state, err = a.sendByWorker(b, left, o)
	returned = true
	return reply, state, err
}

// command sends the command of a release.
func (a *acquisition) command(ctx context.Context, left int, o offer) (lua.Released, error) {
	if k := a.keep.Load(); left == 0 && k != nil && k.rest() > 0 { // see atleast.go
		return a.lock.keepTaken(ctx, a.owner, *k)
	}
	return a.lock.kind.release(ctx, a.owner, left, o)
}

// settle reports the outcome of a release to the successor.
func (a *acquisition) settle(o offer, sent time.Time, r lua.Released, state transport.State) {
	outcome := waitqueue.Release{Outcome: waitqueue.ToAll, Sent: sent, Fence: r.Fence,
		Ticket: waitqueue.Ticket(r.Ticket), Began: r.Began, Late: state == transport.Abandoned}
	switch {
	case state == transport.Unconfirmed, state == transport.Abandoned:
		outcome.Outcome = waitqueue.Uncertain
	case state == transport.NotExecuted, !r.Held, r.Refusal != "":
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
	// Redis may find nothing because an earlier command with a lost reply was the release. holdfast
	// assumes so while the lease lasts. A command that leaves levels behind does not remove the lock.
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
	// The last level has ended as released, so only the caller of the release learns of the loss.
	err := a.loss(watchdog.ErrGone)
	if left == 0 {
		a.step(lose)
	}
	a.report(err)
	return err
}

// reportRefusal logs, once per client, that Redis rejected the message of a release.
func (c *Client) reportRefusal(l *Lock, refusal string) {
	if refusal != "" && c.publishRefused.CompareAndSwap(false, true) {
		c.warn("holdfast: lock released, but Redis rejected the message to the waiters, so they "+
			"notice up to 5 s late; grant this channel in the ACL",
			"lock", l.name, "channel", l.waiting.topic.Channel, "refusal", refusal)
	}
}

// reportClassic logs, once per client, that a release was also announced on a classic channel.
func (c *Client) reportClassic(l *Lock) {
	if c.classic.CompareAndSwap(false, true) {
		c.log.tell(func() {
			c.options.Logger.Info("holdfast: another client waits on a classic channel, as Redisson "+
				"before 3.28 and clients with PubSubClassic do, so releases send a message to every "+
				"node of the cluster", "lock", l.name, "channel", l.waiting.topic.Channel)
		})
	}
}

// The rest of the file handles a caller that leaves before the reply, and ends other than Unlock.

// sendByWorker sends the release from a worker, so that the caller can leave at any time. sent is
// the time of the last try, because a worker repeats a command whose dial was ended.
func (a *acquisition) sendByWorker(b *wait.Budget, left int, o offer,
) (r lua.Released, sent time.Time, state transport.State, err error) {
	var lastTry time.Time
	r, state, err = transport.SendByWorker(a.client.calls, transport.Release, b, a,
		func(a *acquisition, ctx context.Context) (lua.Released, error) {
			lastTry = time.Now()
			return a.command(ctx, left, o)
		}, func(a *acquisition, r lua.Released, err error) {
			if o.Successor != nil {
				a.settle(o, lastTry, r, transport.StateOf(err))
			}
			a.handleLateReply(left, err)
		})
	if state != transport.CallerLeft { // a worker whose caller has left may still set lastTry
		sent = lastTry
	}
	return r, sent, state, err
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

// renews reports whether a level asks for the watchdog. The caller holds mu.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.renew })
}

// renewForLevels makes the watchdog renew the lease if a level asks for that. The caller holds mu,
// because a level that is added afterwards may renew.
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

// abandon releases a hold whose caller does not get it, because a tracer panicked or ended the
// goroutine. h may be nil. abandon calls no foreign code, and does not block.
func (h *Hold) abandon() {
	if h == nil || !h.level.beginRelease() {
		return
	}
	a := h.level.acquisition.(*acquisition)
	if left, _ := a.remove(h.level, release); left == 0 {
		a.keep.Store(nil)
		a.Drop()
		a.client.cleaner.add(a.cleanup())
	}
}

// Drop ends an acquisition with its levels in this process only.
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

// leaver is an [Acquisition] with Leave. For other acquisitions, Hold.Leave only ends the hold.
type leaver interface {
	// Leave ends the level of h. With the last level, Leave ends the acquisition without a command.
	// Leave is called once for each hold, instead of Release.
	Leave(h *Hold)
}

// Leave implements [Hold.Leave].
func (a *acquisition) Leave(h *Hold) {
	if left, _ := a.remove(h.level, leave); left == 0 {
		a.endLeft()
	}
}

// endLeft ends an acquisition after its last level was left.
//
// An earlier request of the owner may still be under way (a.late), with the same name:
//
//   - While the lock is left, the late request finds the owner's own lock, and may extend the
//     lease. The client does not clean up yet, because a release would free a lock that was meant
//     to stay, or that Attach is about to continue.
//   - Once the lease is over, the late request takes the free lock for a whole lease, but nobody
//     holds the lock.
//   - If another owner has the lock by then, the late request registers this owner, and the next
//     release grants this owner the lock.
//
// So the cleanup begins when the lease is over, and continues for as long as after a release. The
// last case may come earlier if the lock was attached and released meanwhile. The lock may then
// stay granted to nobody until the left lease would have ended.
//
// A registered owner that got the lock by asking may still receive a grant message about the left
// lock. The client ignores that message until the lease is over, and cleans up after any other
// grant.
func (a *acquisition) endLeft() {
	a.keep.Store(nil) // only a release keeps the lock
	c, cu := a.client, a.cleanup()
	// In Redis the lease ends later than in this process. The difference is the drift of the whole
	// lease and the time that the command took to reach Redis.
	whole := time.Until(a.watched.Deadline())
	if a.late != nil {
		whole = max(whole, a.late.lease)
	}
	over := a.watched.Deadline().Add(watchdog.Drift(whole))
	if cu.until.After(over) {
		over = cu.until
	}
	over = over.Add(min(c.options.CommandTimeout, closeTimeout))
	c.leaveUntil(over)
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
	c.losses.Remove(a.key(), a) // the acquisition may have been lost before
	if a.lock.sharesKey {
		a.endUntrusted()
	}
}
