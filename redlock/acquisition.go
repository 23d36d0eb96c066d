package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/losses"
	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// acquisition is one owner's lock, from the first request to the nodes until no node holds the
// lock. The owner can trust the lock while it can trust a quorum of parts, because no other owner
// can get a quorum.
type acquisition struct {
	lock    *Lock
	session *lockSession
	owner   string      // on the nodes; a part that rejoined has another
	site    []uintptr   // where the caller acquired the lock; nil unless an option needs it
	budget  wait.Budget // of the release

	mu         sync.Mutex // guards everything below
	state      phase
	parts      []*part       // by node; not changed once the acquisition is over
	levels     []level       // not released, outermost first; not changed once it is over
	level1     [1]level      // the memory of levels for the usual case
	unlocked   int           // how many levels were released since the loss
	longest    time.Duration // the longest lease in a request to a node
	extendedTo time.Time     // the latest deadline that an extension requested; zero if none
	round      *extension    // the extension in progress that late parts join; nil if none is
	reason     error         // why the acquisition is over
	deadline   time.Time     // once over, until when the owner could trust the lock
	acquired   time.Time     // when the owner got the lock
	gaps       []gap         // that have ended, and that a later gap may overlap with
	decided    func() bool   // what the last call to waitUntil waits for
	decision   chan struct{} // closed, and nil, once decided is true or another call follows

	traced atomic.Value // for package rlock
}

// hook gives access to what package rlock does not export.
var hook = rlock.Internals(compose.Access{})

// level is one hold of the owner.
type level struct {
	hold  *rlock.Hold // a second Hold, so that the caller's Hold can become unreachable
	end   func(reason error)
	renew bool
}

// sessionKey identifies what one owner has with one lock.
type sessionKey struct {
	lock  identity
	token owner.Token
}

type lockSession = session.Session[sessionKey, *acquisition]

// sessions has the sessions of this process, and what their owners hold. It belongs to no Lock,
// because a caller may make any number of Locks of the same nodes.
var sessions = session.New[sessionKey, *acquisition]()

// lostAcquisitions remembers lost acquisitions until all their levels are unlocked, for Unlock
// without a hold.
var lostAcquisitions losses.Memory[sessionKey, *acquisition]

// heldIn returns the acquisition of the owner of a session; nil if the owner does not hold the
// lock.
func heldIn(s *lockSession) (a *acquisition) {
	s.Do(func(state **acquisition) { a = *state })
	return a
}

var _ rlock.Acquisition = (*acquisition)(nil)

// These implement [rlock.Acquisition], together with Extend and Release.

func (a *acquisition) Name() string  { return a.lock.name }
func (a *acquisition) Owner() string { return a.owner }
func (a *acquisition) Token() int64  { return 0 } // see the package documentation

// TracedLevels returns where package rlock counts traced levels.
func (a *acquisition) TracedLevels() *atomic.Value { return &a.traced }

// Deadline returns the time until which the owner can trust a quorum of parts.
func (a *acquisition) Deadline() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trustedUntil()
}

// do calls f with mu held. If the deadline has passed and no watchdog has reported that yet, do
// first ends the acquisition as lost. If the acquisition ends in do, do then calls finish without
// mu.
func (a *acquisition) do(f func()) {
	a.mu.Lock()
	before := a.state
	if before == held {
		a.check(watchdog.ErrExpired, a.trustedUntil())
	}
	f()
	a.notify()
	ended := !before.over() && a.state.over()
	a.mu.Unlock()
	if ended {
		a.finish()
	}
}

// finish ends the levels of an acquisition that is over, and then sends the releases of its parts.
func (a *acquisition) finish() {
	a.report(a.endLevels())
	holds := make([]compose.NodeAcquisition, 0, 8)
	a.do(func() {
		a.sendReleases()
		for _, p := range a.parts {
			if p.hold != nil {
				holds = append(holds, p.hold)
			}
		}
	})
	// Releases need not wait for Drop, because a renewal after a release finds another owner or none.
	for _, hold := range holds {
		hold.Drop()
	}
}

// endLevels ends the levels of an acquisition that is over, if finish has not done so, and returns
// why.
func (a *acquisition) endLevels() error {
	// Innermost first, because ending an outer context would end a context inside before its hold.
	for _, l := range slices.Backward(a.levels) {
		l.end(a.reason)
	}
	return a.reason
}

// report logs a loss.
func (a *acquisition) report(err error) {
	if errors.Is(err, rlock.ErrLost) {
		a.lock.nodes[0].Warn(err.Error(), "lock", a.lock.name, "owner", a.owner)
	}
}

// waitUntil blocks until done returns true, no time is left, or b ends. It reports whether done
// returned true, or another call of waitUntil ended this call, because an Unlock ends the wait of
// an Extend. waitUntil calls both functions with mu held. The argument of left is true in its first
// call.
func (a *acquisition) waitUntil(b *wait.Budget, left func(bool) time.Duration, done func() bool,
) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.decision != nil {
		close(a.decision)
	}
	decision := make(chan struct{})
	a.decided, a.decision = done, decision
	a.notify()
	for first := true; a.decision == decision && !b.Over(); first = false {
		limit := left(first)
		if limit <= 0 {
			break
		}
		a.mu.Unlock()
		b.Sleep(limit, decision, nil)
		a.mu.Lock()
	}
	if a.decision == decision {
		a.decided, a.decision = nil, nil
		return false
	}
	return true
}

// The methods below are called with mu held.

// notify ends waitUntil if decided returns true.
func (a *acquisition) notify() {
	if a.decision != nil && a.decided() {
		close(a.decision)
		a.decided, a.decision = nil, nil // decided may keep the caller's context alive
	}
}

// trustedUntil returns the time until which the owner can trust a quorum of parts.
func (a *acquisition) trustedUntil() time.Time {
	if a.state.over() {
		return a.deadline
	}
	deadlines := make([]time.Time, 0, 8)
	for _, p := range a.parts {
		if p.state == granted {
			deadlines = append(deadlines, p.hold.Deadline())
		}
	}
	return nthLast(deadlines, a.lock.quorum, time.Time.Compare)
}

// nthLast sorts times and returns the n-th last of them; zero if there are fewer.
func nthLast[T any](times []T, n int, compare func(a, b T) int) (nth T) {
	if n > 0 && n <= len(times) {
		slices.SortFunc(times, compare)
		nth = times[len(times)-n]
	}
	return nth
}

// check ends the acquisition, within do, if a quorum does not hold the lock any more. reason is why
// the last part was lost, and before is the time until which the owner could trust the lock with
// that part.
func (a *acquisition) check(reason error, before time.Time) {
	now := time.Now()
	if a.state != held || now.Before(a.trustedUntil()) {
		return
	}
	if now.Before(before) {
		before = now
	}
	for _, p := range a.parts {
		if p.state == granted && !now.Before(p.hold.Deadline()) {
			p.err = p.hold.Expiry() // the watchdog has not reported it yet
		}
	}
	if a.countIf(func(p *part) bool { return errors.Is(p.err, rlock.ErrClosed) }) > a.lock.spare {
		a.end(closed, fmt.Errorf("too few nodes are left: %w", rlock.ErrClosed), before)
		return
	}
	a.end(lost, a.lostError(reason, func(p *part) bool {
		return p.state == granted && !errors.Is(p.err, watchdog.ErrExpired)
	}), before)
}

// end ends the acquisition, within do, and decides the further state of its parts. Nothing else
// ends them after that.
func (a *acquisition) end(as phase, reason error, deadline time.Time) {
	if a.state == held {
		// After a loss, the next attempt of the owner must not find the lost acquisition.
		a.session.Do(func(state **acquisition) { *state = nil })
		a.session.Close()
		if as == lost {
			lostAcquisitions.Add(a.session.Key(), a)
		}
	}
	a.state.enter(as)
	a.reason, a.deadline = reason, deadline
	for _, p := range a.parts {
		switch {
		case p.state == granted && as == left:
			p.state.enter(kept)
		case p.state == granted:
			p.state.enter(releaseDue)
		case p.state == asked && p.node.Pool().Withdraw(&p.request):
			p.state.enter(missing)
			p.err = errNoPart
		case p.state == asked:
			p.state.enter(unwanted) // Run releases what the node grants
			if time.Since(p.askedAt) >= p.request.Timeout {
				// The node may execute the request after its connection was closed, and then nobody gets the
				// reply.
				p.cleanUp()
			}
		default:
			if errors.Is(p.err, watchdog.ErrExpired) {
				p.cleanUp() // the node's lease ends after ours, by the drift margin
			}
			p.err = errNoPart
		}
	}
}

// in returns a function that reports whether the state of a part is in states.
func in(states ...state) func(p *part) bool {
	return func(p *part) bool { return slices.Contains(states, p.state) }
}

// count returns the number of parts in these states.
func (a *acquisition) count(states ...state) int { return a.countIf(in(states...)) }

// countIf returns the number of parts for which is returns true.
func (a *acquisition) countIf(is func(p *part) bool) (n int) {
	for _, p := range a.parts {
		if is(p) {
			n++
		}
	}
	return n
}

// renews reports whether a level uses the watchdog.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l level) bool { return l.renew })
}

// setRenew starts or stops the renewal of the parts.
func (a *acquisition) setRenew(renew bool) {
	for _, p := range a.parts {
		if p.state == granted {
			p.hold.SetRenew(renew)
		}
	}
}

// addLevel adds a level, and returns its hold.
func (a *acquisition) addLevel(ctx context.Context, renew bool) *rlock.Hold {
	hold, kept, end := hook.NewHold(ctx, a, nil)
	if a.levels == nil {
		a.levels = a.level1[:0]
	}
	a.levels = append(a.levels, level{hold: kept, end: end, renew: renew})
	if renew {
		a.setRenew(true)
	}
	return hold
}
