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

	mu       sync.Mutex
	phase    phase         // guarded by mu
	parts    []part        // guarded by mu; by node
	first    []request     // guarded by mu; room for those that were asked for first; a node is given its own once
	levels   []level       // guarded by mu; those not released, outermost first
	unlocked int           // guarded by mu; how many of them were released since it was lost
	few      [1]level      // room for levels, mostly enough
	longest  time.Duration // guarded by mu; the longest lease that any node was asked for
	asFarAs  time.Time     // guarded by mu; until when a extension wants it kept; zero before the first
	ended    error         // guarded by mu; why it is over
	deadline time.Time     // guarded by mu; when it is over, until when it could be trusted
	leaving  *releasing    // guarded by mu; its release, if that was asked for
	decided  func() bool   // guarded by mu; what somebody waits for, if anybody does; called with mu held
	progress chan struct{} // told when decided is true
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
	t := &acquisition{lock: l, session: s, token: token, owner: l.nodes[0].NewOwner(),
		parts: make(
			[]part,
			len(l.nodes),
		), first: make([]request, len(l.nodes)), progress: make(chan struct{}, 1)}
	t.levels = t.few[:0]
	return t
}

// Name is the lock's.
func (t *acquisition) Name() string { return t.lock.name }

// Owner is that of the first parts.
func (t *acquisition) Owner() string { return t.owner }

// Token is 0: see the documentation of the package.
func (t *acquisition) Token() int64 { return 0 }

// Deadline is until when a quorum of parts can be trusted.
func (t *acquisition) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trusted()
}

// The methods below, up to ask, are called with mu held.

func (t *acquisition) trusted() time.Time {
	if t.phase == over {
		return t.deadline
	}
	deadlines := make([]time.Time, 0, 8)
	for i := range t.parts {
		if g := t.parts[i].request; g != nil {
			deadlines = append(deadlines, g.trusted())
		}
	}
	if len(deadlines) < t.lock.quorum {
		return time.Time{}
	}
	slices.SortFunc(deadlines, func(a, b time.Time) int { return b.Compare(a) })
	return deadlines[t.lock.quorum-1]
}

// in counts the parts in a state.
func (t *acquisition) in(s state) int {
	n := 0
	for i := range t.parts {
		if t.parts[i].state == s {
			n++
		}
	}
	return n
}

// renews tells whether a level wants the watchdog.
func (t *acquisition) renews() bool {
	return slices.ContainsFunc(t.levels, func(l level) bool { return l.renew })
}

// await waits until what decided asks for is true, which it reports, until the time is over, or
// until b ends.
func (t *acquisition) await(b *wait.Budget, limit time.Duration) (decided bool) {
	for end := time.Now().Add(limit); ; {
		t.mu.Lock()
		decided := t.decided()
		t.mu.Unlock()
		if decided {
			select { // somebody else may wait for the same: Release beside Extend
			case t.progress <- struct{}{}:
			default:
			}
			return true
		}
		left := time.Until(end)
		if left <= 0 || !b.Sleep(left, t.progress, nil) { // perhaps progress of an earlier wait
			return false
		}
	}
}

// tell wakes who waits, if there is a reason to.
func (t *acquisition) tell() {
	if t.decided == nil || !t.decided() {
		return
	}
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

// ask puts the question for its part to node i. What becomes of it is noted by request.Run.
func (t *acquisition) ask(i int, as string, lease time.Duration) {
	node, p := t.lock.nodes[i], &t.parts[i]
	*p = part{node: i, owner: as, asked: time.Now()}
	if p.err = available(node); p.err != nil {
		return
	}
	t.longest = max(t.longest, lease)
	g := &t.first[i]
	if g.acquisition != nil {
		g = new(request) // somebody may still look at the first
	}
	g.acquisition, g.node, g.owner, g.lease = t, i, as, lease
	g.call.Task, g.call.Timeout = g, t.lock.nodeTimeout(node, lease)
	p.state, p.call = asked, &g.call
	if !node.Pool().Do(p.call) {
		p.state, p.err = missing, rlock.ErrClosed
	}
}

// available tells why a node is not to be asked; nil if it is.
func available(node hooks.Node) error {
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
func (t *acquisition) expire() {
	if t.phase != held || time.Now().Before(t.trusted()) {
		return
	}
	t.deadline = t.trusted()
	t.lose(watchdog.ErrExpired)
	t.mu.Lock()
}

// lose ends the acquisition because a quorum does not hold it any more. It is called with mu held,
// and releases it.
func (t *acquisition) lose(reason error) {
	lost := &rlock.LostError{Lock: t.lock.name, Reason: t.tally(reason)}
	closed := 0
	for i := range t.parts {
		if errors.Is(t.parts[i].err, rlock.ErrClosed) {
			closed++
		}
	}
	if closed > len(t.parts)-t.lock.quorum {
		t.finish(fmt.Errorf("%w, of too many nodes", rlock.ErrClosed))
		return
	}
	t.finish(lost)
	t.lock.nodes[0].Warn(lost.Error(), "lock", t.lock.name, "owner", t.owner)
}

// finish ends the acquisition and all its levels, and gives back what is left of it in the
// background. It is called with mu held, and releases it.
func (t *acquisition) finish(reason error) {
	t.phase, t.ended = over, reason
	// Before anybody hears of it: the owner's next attempt must not find what it was told is lost.
	if errors.Is(reason, rlock.ErrLost) {
		lostAcquisitions.Add(t.session.Key(), t)
	}
	drop(t.session, t)
	t.tell()
	t.mu.Unlock()
	_ = t.conclude()
	t.giveUp()
}

// conclude waits until all levels have ended, and returns why. It is called without mu, after phase
// is over.
func (t *acquisition) conclude() error {
	t.mu.Lock()
	levels, reason := t.levels, t.ended // which do not change any more
	t.mu.Unlock()
	for _, l := range slices.Backward(levels) { // a context inside another's would end before its hold
		l.end(reason)
	}
	return reason
}

// begin adds a level, and returns its hold. It is called with mu held.
func (t *acquisition) begin(ctx context.Context, renew bool) *rlock.Hold {
	hold, end := rlock.NewHold(ctx, t)
	before := t.renews()
	t.levels = append(t.levels, level{hold: hold, end: end, renew: renew})
	t.setRenew(before)
	return hold
}

// setRenew has the parts renewed, or not any more, after the levels have changed. It is called with
// mu held.
func (t *acquisition) setRenew(before bool) {
	now := t.renews()
	if now == before {
		return
	}
	for i := range t.parts {
		if g := t.parts[i].request; g != nil && g.hold != nil {
			g.hold.SetRenew(now)
		}
	}
}

// innermost are the holds, innermost first.
func (t *acquisition) innermost() []*rlock.Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds := make([]*rlock.Hold, 0, len(t.levels))
	for _, l := range slices.Backward(t.levels) {
		holds = append(holds, l.hold)
	}
	return holds
}
