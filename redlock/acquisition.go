package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// acquisition is one owner's possession of a lock, from the first question to the nodes until
// nothing is held any more.
//
// It has a part on each node that granted it, with a lease and a deadline of its own; the watchdog
// of the node's client renews it. The acquisition can be trusted as long as a quorum of parts can:
// at that instant each of those nodes keeps everybody else out, and nobody else can have a quorum.
// So its deadline is that of the part with the quorum-th latest, and a renewal counts as soon as,
// and only if, a quorum of nodes has carried it out.
type acquisition struct {
	lock    *Lock
	session *lockSession
	token   owner.Token // in this process
	owner   string      // on the nodes; a part that came later has another

	mu           sync.Mutex
	phase        phase         // guarded by mu
	parts        []part        // guarded by mu; by node
	first        []request     // guarded by mu; room for those that were asked for first; a node is given its own once
	levels       []level       // guarded by mu; those not released, outermost first
	unlocked     int           // guarded by mu; how many of them were released since it was lost
	preallocated [1]level      // room for levels, mostly enough
	longest      time.Duration // guarded by mu; the longest lease that any node was asked for
	extendedTo   time.Time     // guarded by mu; until when a extension wants it kept; zero before the first
	reason       error         // guarded by mu; why it is over
	deadline     time.Time     // guarded by mu; when it is over, until when it could be trusted
	release      *release      // guarded by mu; its release, if that was asked for
	decided      func() bool   // guarded by mu; what somebody waits for, if anybody does; called with mu held
	progress     chan struct{} // told when decided is true
}

// phase is how far an acquisition has come. It only ever grows.
type phase uint8

const (
	asking phase = iota // nobody knows yet whether there is a quorum
	held
	over
)

// part is what the acquisition has on one node.
type part struct {
	node    int
	state   state
	owner   string    // who was asked for
	call    *wait.Job // the last question
	asked   time.Time // when it was put
	vote    lua.Vote  // the last answer
	err     error     // why there is none, or why what was granted is gone
	request *request  // while granted
}

// state is that of a part.
type state uint8

const (
	missing state = iota // not taken, or lost
	asked                // the question is under way
	granted
)

// level is one hold.
type level struct {
	hold  *rlock.Hold
	end   func(reason error)
	renew bool
}

var _ rlock.Acquisition = (*acquisition)(nil)

func newAcquisition(l *Lock, s *lockSession, token owner.Token) *acquisition {
	a := &acquisition{lock: l, session: s, token: token, owner: l.nodes[0].NewOwner(),
		parts: make(
			[]part,
			len(l.nodes),
		), first: make([]request, len(l.nodes)), progress: make(chan struct{}, 1)}
	a.levels = a.preallocated[:0]
	return a
}

// Name is the lock's.
func (a *acquisition) Name() string { return a.lock.name }

// Owner is that of the first parts.
func (a *acquisition) Owner() string { return a.owner }

// Token is 0: see the documentation of the package.
func (a *acquisition) Token() int64 { return 0 }

// Deadline is until when a quorum of parts can be trusted.
func (a *acquisition) Deadline() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trustedUntil()
}

// The methods below, up to ask, are called with mu held.

func (a *acquisition) trustedUntil() time.Time {
	if a.phase == over {
		return a.deadline
	}
	deadlines := make([]time.Time, 0, 8)
	for i := range a.parts {
		if q := a.parts[i].request; q != nil {
			deadlines = append(deadlines, q.trustedUntil())
		}
	}
	if len(deadlines) < a.lock.quorum {
		return time.Time{}
	}
	slices.SortFunc(deadlines, func(a, b time.Time) int { return b.Compare(a) })
	return deadlines[a.lock.quorum-1]
}

// in counts the parts in a state.
func (a *acquisition) count(s state) int {
	n := 0
	for i := range a.parts {
		if a.parts[i].state == s {
			n++
		}
	}
	return n
}

// renews tells whether a level wants the watchdog.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l level) bool { return l.renew })
}

// await waits until what decided asks for is true, which it reports, until the time is over, or
// until b ends.
func (a *acquisition) waitDecided(b *wait.Budget, limit time.Duration) (decided bool) {
	for end := time.Now().Add(limit); ; {
		a.mu.Lock()
		decided := a.decided()
		a.mu.Unlock()
		if decided {
			select { // somebody else may wait for the same: Release beside Extend
			case a.progress <- struct{}{}:
			default:
			}
			return true
		}
		left := time.Until(end)
		if left <= 0 || !b.Sleep(left, a.progress, nil) { // perhaps progress of an earlier wait
			return false
		}
	}
}

// tell wakes who waits, if there is a reason to.
func (a *acquisition) notify() {
	if a.decided == nil || !a.decided() {
		return
	}
	select {
	case a.progress <- struct{}{}:
	default:
	}
}

// ask puts the question for its part to node i. What becomes of it is noted by request.Run.
func (a *acquisition) ask(i int, ownerID string, lease time.Duration) {
	node, p := a.lock.nodes[i], &a.parts[i]
	*p = part{node: i, owner: ownerID, asked: time.Now()}
	if p.err = unavailable(node); p.err != nil {
		return
	}
	a.longest = max(a.longest, lease)
	q := &a.first[i]
	if q.acquisition != nil {
		q = new(request) // somebody may still look at the first
	}
	q.acquisition, q.node, q.owner, q.lease = a, i, ownerID, lease
	q.call.Task, q.call.Timeout = q, a.lock.nodeTimeout(node, lease)
	p.state, p.call = asked, &q.call
	if !node.Pool().Do(p.call) {
		p.state, p.err = missing, rlock.ErrClosed
	}
}

// available tells why a node is not to be asked; nil if it is.
func unavailable(node hooks.Node) error {
	select {
	case <-node.Closing():
		return rlock.ErrClosed
	default:
	}
	if stalled := node.Pool().Stalled(); stalled > 0 {
		return &stalledError{after: stalled}
	}
	return nil
}

// expire ends an acquisition whose deadline has passed, if whoever tells of that has not come to it
// yet. It is called with mu held, which it may release in between.
func (a *acquisition) expire() {
	if a.phase != held || time.Now().Before(a.trustedUntil()) {
		return
	}
	a.deadline = a.trustedUntil()
	a.lose(watchdog.ErrExpired)
	a.mu.Lock()
}

// lose ends the acquisition because a quorum does not hold it any more. It is called with mu held,
// and releases it.
func (a *acquisition) lose(reason error) {
	lost := &rlock.LostError{Lock: a.lock.name, Reason: a.lossReason(reason)}
	closed := 0
	for i := range a.parts {
		if errors.Is(a.parts[i].err, rlock.ErrClosed) {
			closed++
		}
	}
	if closed > len(a.parts)-a.lock.quorum {
		a.finish(fmt.Errorf("%w, of too many nodes", rlock.ErrClosed))
		return
	}
	a.finish(lost)
	a.lock.nodes[0].Warn(lost.Error(), "lock", a.lock.name, "owner", a.owner)
}

// finish ends the acquisition and all its levels, and gives back what is left of it in the
// background. It is called with mu held, and releases it.
func (a *acquisition) finish(reason error) {
	a.phase, a.reason = over, reason
	// Before anybody hears of it: the owner's next attempt must not find what it was told is lost.
	if errors.Is(reason, rlock.ErrLost) {
		lostAcquisitions.Add(a.session.Key(), a)
	}
	detach(a.session, a)
	a.notify()
	a.mu.Unlock()
	_ = a.endLevels()
	a.releaseAll()
}

// conclude waits until all levels have ended, and returns why. It is called without mu, after phase
// is over.
func (a *acquisition) endLevels() error {
	a.mu.Lock()
	levels, reason := a.levels, a.reason // which do not change any more
	a.mu.Unlock()
	for _, l := range slices.Backward(levels) { // a context inside another's would end before its hold
		l.end(reason)
	}
	return reason
}

// begin adds a level, and returns its hold. It is called with mu held.
func (a *acquisition) addLevel(ctx context.Context, renew bool) *rlock.Hold {
	hold, end := rlock.NewHold(ctx, a)
	before := a.renews()
	a.levels = append(a.levels, level{hold: hold, end: end, renew: renew})
	a.setRenew(before)
	return hold
}

// setRenew has the parts renewed, or not any more, after the levels have changed. It is called with
// mu held.
func (a *acquisition) setRenew(before bool) {
	now := a.renews()
	if now == before {
		return
	}
	for i := range a.parts {
		if q := a.parts[i].request; q != nil && q.hold != nil {
			q.hold.SetRenew(now)
		}
	}
}

// innermost are the holds, innermost first.
func (a *acquisition) holds() []*rlock.Hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	holds := make([]*rlock.Hold, 0, len(a.levels))
	for _, l := range slices.Backward(a.levels) {
		holds = append(holds, l.hold)
	}
	return holds
}
