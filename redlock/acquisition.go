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

// acquisition is one owner's lock, from the first request to the nodes until nothing is held any
// more.
//
// It has a part on each node that granted it, with a lease and a deadline of its own. The watchdog
// of the node's client renews the part. The acquisition can be trusted as long as a quorum of parts
// can: each of those nodes keeps every other owner out, and nobody else can get a quorum. Its
// deadline is therefore the quorum-th latest of the parts. A renewal counts as soon as, and only
// if, a quorum of nodes has carried it out.
type acquisition struct {
	lock    *Lock
	session *lockSession
	token   owner.Token // the owner in this process
	owner   string      // on the nodes; a part that rejoined has another

	mu           sync.Mutex // guards everything below but progress
	phase        phase
	parts        []part        // by node
	requests     []request     // preallocated, by node; each is used once
	levels       []level       // those not released, outermost first
	unlocked     int           // how many levels were released since the loss
	preallocated [1]level      // room for levels, enough for most acquisitions
	longest      time.Duration // the longest lease that any node was asked for
	extendedTo   time.Time     // the latest deadline that an extension wanted; zero if none
	reason       error         // why it is over
	deadline     time.Time     // once over, until when it could be trusted
	release      *release      // its release; nil if it was not asked for
	decided      func() bool   // what waitDecided waits for; nil before the first wait
	progress     chan struct{} // receives once decided returns true
}

// phase is the state of an acquisition. It only ever grows.
type phase uint8

const (
	asking phase = iota // no quorum yet
	held
	over
)

// part is the state of an acquisition on one node.
type part struct {
	node    int
	state   state
	owner   string    // the owner of the last request
	call    *wait.Job // the last request
	asked   time.Time // when it was given to the pool
	vote    lua.Vote  // the last reply
	err     error     // why there is no reply, or why a granted part is gone
	request *request  // while granted; else nil
}

// state is the state of a part.
type state uint8

const (
	missing state = iota // never granted, or lost
	asked                // the request is under way
	granted
)

// level is one nested Lock, with its hold.
type level struct {
	hold  *rlock.Hold
	end   func(reason error)
	renew bool
}

var _ rlock.Acquisition = (*acquisition)(nil)

func newAcquisition(l *Lock, s *lockSession, token owner.Token) *acquisition {
	a := &acquisition{lock: l, session: s, token: token, owner: l.nodes[0].NewOwner(),
		parts: make([]part, len(l.nodes)), requests: make([]request, len(l.nodes)),
		progress: make(chan struct{}, 1)}
	a.levels = a.preallocated[:0]
	return a
}

// Name returns the name of the lock.
func (a *acquisition) Name() string { return a.lock.name }

// Owner returns the owner that the first round acquired for.
func (a *acquisition) Owner() string { return a.owner }

// Token returns 0, because a quorum has no fencing token: see the package documentation.
func (a *acquisition) Token() int64 { return 0 }

// Deadline returns the time until which a quorum of parts can be trusted.
func (a *acquisition) Deadline() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trustedUntil()
}

// trustedUntil is Deadline, called with mu held.
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

// count returns the number of parts in a state. It is called with mu held.
func (a *acquisition) count(s state) int {
	n := 0
	for i := range a.parts {
		if a.parts[i].state == s {
			n++
		}
	}
	return n
}

// renews reports whether a level uses the watchdog. It is called with mu held.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l level) bool { return l.renew })
}

// waitDecided waits until decided returns true, for at most limit, or until b ends. It reports
// whether decided returned true.
func (a *acquisition) waitDecided(b *wait.Budget, limit time.Duration) (decided bool) {
	for end := time.Now().Add(limit); ; {
		a.mu.Lock()
		decided := a.decided()
		a.mu.Unlock()
		if decided {
			select { // another call may wait as well: Release beside Extend
			case a.progress <- struct{}{}:
			default:
			}
			return true
		}
		left := time.Until(end)
		if left <= 0 || !b.Sleep(left, a.progress, nil) { // the wake-up may be an earlier wait's
			return false
		}
	}
}

// notify wakes waitDecided once decided returns true. It is called with mu held.
func (a *acquisition) notify() {
	if a.decided == nil || !a.decided() {
		return
	}
	select {
	case a.progress <- struct{}{}:
	default:
	}
}

// ask requests the part of node i for an owner. request.Run handles the reply. It is called with mu
// held.
func (a *acquisition) ask(i int, ownerID string, lease time.Duration) {
	node, p := a.lock.nodes[i], &a.parts[i]
	*p = part{node: i, owner: ownerID, asked: time.Now()}
	if p.err = unavailable(node); p.err != nil {
		return
	}
	a.longest = max(a.longest, lease)
	q := &a.requests[i]
	if q.acquisition != nil {
		q = new(request) // the node's pool may still read the first
	}
	q.acquisition, q.node, q.owner, q.lease = a, i, ownerID, lease
	q.call.Task, q.call.Timeout = q, a.lock.nodeTimeout(node, lease)
	p.state, p.call = asked, &q.call
	if !node.Pool().Do(p.call) {
		p.state, p.err = missing, rlock.ErrClosed
	}
}

// unavailable returns why a node must not be asked; nil if it may be.
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

// expire ends the acquisition if its deadline has passed and the watchdogs have not reported that
// yet. It is called with mu held, which it may unlock in between.
func (a *acquisition) expire() {
	if a.phase != held || time.Now().Before(a.trustedUntil()) {
		return
	}
	a.deadline = a.trustedUntil()
	a.lose(watchdog.ErrExpired)
	a.mu.Lock()
}

// lose ends the acquisition because a quorum does not hold it any more. It is called with mu held,
// and unlocks it.
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

// finish ends the acquisition and all its levels, and releases the remaining parts in the
// background. It is called with mu held, and unlocks it.
func (a *acquisition) finish(reason error) {
	a.phase, a.reason = over, reason
	// This comes before the holds end: an owner that learned of the loss must not find the lost
	// acquisition with its next attempt.
	if errors.Is(reason, rlock.ErrLost) {
		lostAcquisitions.Add(a.session.Key(), a)
	}
	detach(a.session, a)
	a.notify()
	a.mu.Unlock()
	_ = a.endLevels()
	a.releaseAll()
}

// endLevels ends all levels, or waits until they have ended, and returns why. It is called without
// mu, after phase is over.
func (a *acquisition) endLevels() error {
	a.mu.Lock()
	levels, reason := a.levels, a.reason // they do not change any more
	a.mu.Unlock()
	// Innermost first: ending an outer context would end a context inside it before its hold.
	for _, l := range slices.Backward(levels) {
		l.end(reason)
	}
	return reason
}

// addLevel adds a level, and returns its hold. It is called with mu held.
func (a *acquisition) addLevel(ctx context.Context, renew bool) *rlock.Hold {
	hold, end := rlock.NewHold(ctx, a)
	before := a.renews()
	a.levels = append(a.levels, level{hold: hold, end: end, renew: renew})
	a.setRenew(before)
	return hold
}

// setRenew starts or stops the renewal of the parts after the levels have changed. before is what
// renews returned before the change. It is called with mu held.
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

// holds returns the holds of the levels, innermost first.
func (a *acquisition) holds() []*rlock.Hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	holds := make([]*rlock.Hold, 0, len(a.levels))
	for _, l := range slices.Backward(a.levels) {
		holds = append(holds, l.hold)
	}
	return holds
}
