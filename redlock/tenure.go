package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/internal/crew"
	"holdfast/internal/owner"
	"holdfast/internal/seam"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// tenure is one owner's possession of a lock, from the first question to the nodes until nothing is held any more.
//
// It has a part on each node that granted it, with a lease and a deadline of its own; the watchdog of the node's client
// renews it. The tenure can be trusted as long as a quorum of parts can: at that instant each of those nodes keeps everybody
// else out, and nobody else can have a quorum. So its deadline is that of the part with the quorum-th latest, and a renewal
// counts as soon as, and only if, a quorum of nodes has carried it out.
type tenure struct {
	lock  *Lock
	seat  *seat
	token owner.Token // in this process
	owner string      // on the nodes; a part that came later has another

	mu       sync.Mutex
	phase    phase         // guarded by mu
	parts    []part        // guarded by mu; by node
	levels   []level       // guarded by mu; those not released, outermost first
	longest  time.Duration // guarded by mu; the longest lease that any node was asked for
	ended    error         // guarded by mu; why it is over
	deadline time.Time     // guarded by mu; when it is over, until when it could be trusted
	decided  func() bool   // guarded by mu; what somebody waits for, if anybody does; called with mu held
	progress chan struct{} // told when decided is true
}

// phase is how far a tenure has come. It only ever grows.
type phase uint8

const (
	asking phase = iota // nobody knows yet whether there is a quorum
	held
	over
)

// part is what the tenure has on one node.
type part struct {
	state state
	owner string     // who was asked for
	call  *crew.Call // the last question
	asked time.Time  // when it was put
	vote  lua.Vote   // the last answer
	err   error      // why there is none, or why what was granted is gone
	grant *grant     // while granted
}

// grant is what a node has given.
type grant struct {
	hold  seam.NodeHold
	ended error // guarded by the tenure's mutex; why it is not held any more
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

var _ rlock.Tenure = (*tenure)(nil)

func newTenure(l *Lock, s *seat, token owner.Token) *tenure {
	return &tenure{lock: l, seat: s, token: token, owner: l.nodes[0].NewOwner(),
		parts: make([]part, len(l.nodes)), progress: make(chan struct{}, 1)}
}

// Name is the lock's.
func (t *tenure) Name() string { return t.lock.name }

// Owner is that of the first parts.
func (t *tenure) Owner() string { return t.owner }

// Token is 0: see the documentation of the package.
func (t *tenure) Token() int64 { return 0 }

// Deadline is until when a quorum of parts can be trusted.
func (t *tenure) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trusted()
}

// The methods below, up to ask, are called with mu held.

func (t *tenure) trusted() time.Time {
	if t.phase == over {
		return t.deadline
	}
	deadlines := make([]time.Time, 0, 8)
	for i := range t.parts {
		if g := t.parts[i].grant; g != nil {
			deadlines = append(deadlines, g.hold.Deadline())
		}
	}
	if len(deadlines) < t.lock.quorum {
		return time.Time{}
	}
	slices.SortFunc(deadlines, func(a, b time.Time) int { return b.Compare(a) })
	return deadlines[t.lock.quorum-1]
}

// in counts the parts in a state.
func (t *tenure) in(s state) int {
	n := 0
	for i := range t.parts {
		if t.parts[i].state == s {
			n++
		}
	}
	return n
}

// renews tells whether a level wants the watchdog.
func (t *tenure) renews() bool {
	return slices.ContainsFunc(t.levels, func(l level) bool { return l.renew })
}

// tell wakes who waits, if there is a reason to.
func (t *tenure) tell() {
	if t.decided == nil || !t.decided() {
		return
	}
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

// ask puts the question for its part to node i. What becomes of it is noted by answered.
func (t *tenure) ask(i int, as string, lease time.Duration) {
	node, p := t.lock.nodes[i], &t.parts[i]
	*p = part{owner: as, asked: time.Now()}
	patience := t.lock.options.nodeTimeout(lease)
	if p.err = available(node); p.err != nil {
		return
	}
	t.longest = max(t.longest, lease)
	p.state = asked
	p.call = &crew.Call{Patience: patience, Run: func() { t.acquire(i, as, lease) }}
	if !node.Crew().Do(p.call) {
		p.state, p.err = missing, rlock.ErrClosed
	}
}

// available tells why a node is not to be asked; nil if it is.
func available(node seam.Node) error {
	select {
	case <-node.Closing():
		return rlock.ErrClosed
	default:
	}
	if stalled := node.Crew().Stalled(); stalled > 0 {
		return &silence{after: stalled}
	}
	return nil
}

// acquire asks node i. It may take as long as the node likes, and nobody may be left who wants to know.
func (t *tenure) acquire(i int, as string, lease time.Duration) {
	node := t.lock.nodes[i]
	t.mu.Lock()
	wanted, renew := t.phase != over, t.phase == held && t.renews()
	t.mu.Unlock()
	if !wanted {
		return
	}
	sent := time.Now()
	vote, err := node.Acquire(as, lease, t.lock.options.delay())
	var g grant
	if err == nil && vote.Granted {
		deadline := watchdog.Deadline(sent, lease)
		if time.Now().Before(deadline) {
			g.hold = node.Hold(as, t.token, deadline, renew,
				func(reason error) { t.partEnded(i, &g, reason) }, t.rejoin)
		}
		if g.hold == nil {
			err = fmt.Errorf("granted, but the answer took longer than the lease of %v", lease)
		}
	}
	taken := err == nil && vote.Granted || err != nil && lua.ClassOf(err) == lua.Unknown

	t.mu.Lock()
	p := &t.parts[i]
	gone := t.phase == over
	if !gone {
		p.state, p.vote, p.err = missing, vote, err
		switch {
		case g.hold == nil:
		case g.ended != nil:
			p.err = g.ended
		default:
			p.state, p.grant = granted, &g
			if now := t.renews(); now != renew && t.phase == held {
				g.hold.SetRenew(now)
			}
		}
		t.tell()
	}
	t.mu.Unlock()

	switch {
	case !taken:
	case gone:
		if g.hold != nil {
			g.hold.LetGo()
		}
		t.sendRelease(i, as)
	case err != nil:
		// It may have been taken in this name, which is never used again.
		node.Abandon(as, time.Now().Add(lease))
	}
}

// partEnded is told that node i's part is lost there, or that its client is closed. It must not block.
func (t *tenure) partEnded(i int, g *grant, reason error) {
	t.mu.Lock()
	g.ended = reason
	p := &t.parts[i]
	if p.grant != g {
		t.mu.Unlock() // not noted as granted yet, or not any more
		return
	}
	deadline := t.trusted()
	p.state, p.grant, p.err = missing, nil, reason
	t.tell()
	if t.phase != held || t.in(granted) >= t.lock.quorum {
		t.mu.Unlock()
		return
	}
	t.deadline = deadline
	t.lose(reason)
}

// lose ends the tenure because a quorum does not hold it any more. It is called with mu held, and releases it.
func (t *tenure) lose(reason error) {
	lost := &rlock.LostError{Lock: t.lock.name, Reason: t.tally(reason)}
	if errors.Is(reason, rlock.ErrClosed) {
		t.finish(fmt.Errorf("%w, of too many nodes", rlock.ErrClosed))
		return
	}
	t.finish(lost)
	t.lock.nodes[0].Warn(lost.Error(), "lock", t.lock.name, "owner", t.owner)
}

// finish ends the tenure and all its levels, and gives back what is left of it in the background. It is called with mu held,
// and releases it.
func (t *tenure) finish(reason error) {
	t.phase, t.ended = over, reason
	levels := t.levels
	t.levels = nil
	t.tell()
	t.mu.Unlock()
	t.seat.drop(t)
	for _, l := range levels {
		l.end(reason)
	}
	t.giveUp()
}

// giveUp releases on all nodes what is, or may be, taken there. The tenure is over, so no part changes any more but by this.
func (t *tenure) giveUp() {
	for i := range t.parts {
		t.mu.Lock()
		p := t.parts[i]
		t.parts[i].state, t.parts[i].grant = missing, nil
		t.mu.Unlock()
		switch {
		case p.state == granted:
			p.grant.hold.LetGo()
			t.sendRelease(i, p.owner)
		case p.state == asked:
			t.retract(i, p)
		}
	}
}

// retract takes back a question that was not answered yet. If it was sent, its answer will be seen to when it comes: what it
// took is released. A node that is silent may carry it out when its connection has long been given up, and nobody gets the
// answer: so it is sent the release as well, on the same connection, behind it.
func (t *tenure) retract(i int, p part) {
	if t.lock.nodes[i].Crew().Withdraw(p.call) || time.Since(p.asked) < p.call.Patience {
		return
	}
	t.sendRelease(i, p.owner)
}

// sendRelease releases node i's part in the background. A refusal is definite and is not released: the script that refuses
// has changed nothing.
func (t *tenure) sendRelease(i int, as string) {
	node := t.lock.nodes[i]
	t.mu.Lock()
	longest := t.longest
	t.mu.Unlock()
	call := &crew.Call{Patience: t.lock.options.nodeTimeout(longest), Run: func() {
		if _, err := node.Release(as); err != nil && !node.Hopeless(err) {
			node.Abandon(as, time.Now().Add(longest))
		}
	}}
	node.Crew().Do(call) // when the client is closed the lease ends it
}

// rejoin is told that a part was renewed, which is the time to ask the nodes that are missing.
func (t *tenure) rejoin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held || !t.renews() {
		return
	}
	for i, node := range t.lock.nodes {
		p := &t.parts[i]
		// All parts of a renewal tell of it; a node need not hear the question of each.
		if p.state == missing && time.Since(p.asked) > node.WatchdogLease()/6 {
			t.ask(i, node.NewOwner(), node.WatchdogLease())
		}
	}
}

// begin adds a level, and returns its hold. It is called with mu held.
func (t *tenure) begin(ctx context.Context, renew bool) *rlock.Hold {
	hold, end := rlock.NewHold(ctx, t)
	before := t.renews()
	t.levels = append(t.levels, level{hold: hold, end: end, renew: renew})
	t.setRenew(before)
	return hold
}

// setRenew has the parts renewed, or not any more, after the levels have changed. It is called with mu held.
func (t *tenure) setRenew(before bool) {
	now := t.renews()
	if now == before {
		return
	}
	for i := range t.parts {
		if g := t.parts[i].grant; g != nil {
			g.hold.SetRenew(now)
		}
	}
}

// innermost are the holds, innermost first.
func (t *tenure) innermost() []*rlock.Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds := make([]*rlock.Hold, 0, len(t.levels))
	for _, l := range slices.Backward(t.levels) {
		holds = append(holds, l.hold)
	}
	return holds
}
