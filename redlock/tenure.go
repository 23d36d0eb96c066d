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
	leaving  *departure    // guarded by mu; its release, if that was asked for
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
	node  int
	state state
	owner string     // who was asked for
	call  *crew.Call // the last question
	asked time.Time  // when it was put
	vote  lua.Vote   // the last answer
	err   error      // why there is none, or why what was granted is gone
	grant *grant     // while granted
}

// grant is a question to a node, and what the node has given.
type grant struct {
	call   crew.Call
	tenure *tenure
	node   int
	owner  string // who was asked for
	lease  time.Duration

	// What follows is guarded by the tenure's mutex.
	hold     seam.NodeHold // watches over what was given; nil until that has begun
	deadline time.Time     // until when it can be trusted, while hold is nil
	lasts    time.Duration // the longest lease that the node was asked for since, while hold is nil
}

// trusted is until when the part can be.
func (g *grant) trusted() time.Time {
	if g.hold != nil {
		return g.hold.Deadline()
	}
	return g.deadline
}

// mayLast notes that the node may be asked to keep it for lease, before it is.
func (g *grant) mayLast(lease time.Duration) {
	g.lasts = max(g.lasts, lease)
	if g.hold != nil {
		g.hold.MayLast(lease)
	}
}

// extend notes that the node keeps it until deadline.
func (g *grant) extend(deadline time.Time) {
	switch {
	case g.hold != nil:
		g.hold.Extend(deadline)
	case deadline.After(g.deadline):
		g.deadline = deadline
	}
}

var _ seam.Part = (*grant)(nil)

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
	*p = part{node: i, owner: as, asked: time.Now()}
	if p.err = available(node); p.err != nil {
		return
	}
	t.longest = max(t.longest, lease)
	g := &grant{tenure: t, node: i, owner: as, lease: lease}
	g.call.Run, g.call.Patience = g.acquire, t.lock.options.nodeTimeout(lease)
	p.state, p.call = asked, &g.call
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

// acquire asks the node. It may take as long as the node likes, and nobody may be left who wants to know.
func (g *grant) acquire() {
	t, node := g.tenure, g.tenure.lock.nodes[g.node]
	t.mu.Lock()
	wanted := t.phase != over
	t.mu.Unlock()
	if !wanted {
		t.left(g.node, false)
		return
	}
	sent := time.Now()
	vote, err := node.Acquire(g.owner, g.lease, t.lock.options.delay())
	deadline := watchdog.Deadline(sent, g.lease)
	taken := err == nil && vote.Granted || err != nil && lua.ClassOf(err) == lua.Unknown
	if err == nil && vote.Granted && !time.Now().Before(deadline) {
		err = fmt.Errorf("granted, but the answer took longer than the lease of %v", g.lease)
	}

	t.mu.Lock()
	// A part that comes too late must not revive what could not be trusted in between.
	t.expire()
	p := &t.parts[g.node]
	gone := t.phase == over
	if !gone {
		p.state, p.vote, p.err = missing, vote, err
		if err == nil && vote.Granted {
			p.state, p.grant, g.deadline = granted, g, deadline
		}
		t.tell()
	}
	t.mu.Unlock()

	switch {
	case gone:
		t.left(g.node, taken && t.release(g.node, g.owner))
	case !taken:
	case err != nil:
		// It may have been taken in this name, which is never used again.
		node.Abandon(g.owner, time.Now().Add(g.lease))
	default:
		g.watch(deadline)
	}
}

// watch begins to watch over what was given. Whoever waits for the quorum need not wait for this; and may have released
// everything meanwhile.
func (g *grant) watch(deadline time.Time) {
	t := g.tenure
	hold := t.lock.nodes[g.node].Hold(g.owner, t.token, deadline, false, g)
	if hold == nil {
		g.Ended(rlock.ErrClosed)
		return
	}
	t.mu.Lock()
	mine := t.parts[g.node].grant == g
	if mine {
		hold.MayLast(g.lasts)
		hold.Extend(g.deadline)
		g.hold = hold
		if t.phase == held && t.renews() {
			hold.SetRenew(true)
		}
	}
	t.mu.Unlock()
	if !mine {
		hold.LetGo()
	}
}

// Ended is told that the part is lost on its node, or that the node's client is closed; or what we know, that we let it go.
func (g *grant) Ended(reason error) {
	t := g.tenure
	var lost *rlock.LostError
	if errors.As(reason, &lost) {
		reason = lost.Reason // it is not the lock that is lost
	}
	t.mu.Lock()
	p := &t.parts[g.node]
	if p.grant != g {
		t.mu.Unlock() // not any more
		return
	}
	deadline := t.trusted()
	p.state, p.grant, p.err = missing, nil, reason
	t.tell()
	// When parts end at the same time their watchdogs may tell of the last one first.
	if t.phase != held || t.in(granted) >= t.lock.quorum && time.Now().Before(deadline) {
		undecided := t.phase == asking
		t.mu.Unlock()
		if undecided && errors.Is(reason, rlock.ErrClosed) {
			// Close leaves alone what is held, and this is not. Later, when the attempt has failed, it could not be released.
			t.sendRelease(g.node, g.owner)
		}
		return
	}
	t.deadline = deadline
	if now := time.Now(); now.Before(deadline) {
		t.deadline = now
	}
	t.lose(reason)
}

// lost is told by the node that it does not hold the part any more.
func (g *grant) lost() {
	g.tenure.mu.Lock()
	hold := g.hold
	g.tenure.mu.Unlock()
	g.Ended(watchdog.ErrGone)
	letGo(hold)
}

// expire ends a tenure whose deadline has passed, if whoever tells of that has not come to it yet. It is called with mu held,
// which it may release in between.
func (t *tenure) expire() {
	if t.phase != held || time.Now().Before(t.trusted()) {
		return
	}
	t.deadline = t.trusted()
	t.lose(watchdog.ErrExpired)
	t.mu.Lock()
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
		p, hold := t.take(i)
		t.mu.Unlock()
		switch p.state {
		case granted:
			t.sendRelease(i, p.owner)
			letGo(hold)
		case asked:
			if !t.withdraw(p) && p.silent() {
				t.sendRelease(i, p.owner)
			}
		case missing:
		}
	}
}

// take takes over the part of node i, and what watches over it, if that has begun. It is called with mu held.
func (t *tenure) take(i int) (p part, hold seam.NodeHold) {
	p = t.parts[i]
	t.parts[i].state, t.parts[i].grant = missing, nil
	if p.grant != nil {
		hold = p.grant.hold
	}
	return p, hold
}

// letGo ends the watch over what is being released.
func letGo(hold seam.NodeHold) {
	if hold != nil {
		hold.LetGo()
	}
}

// withdraw takes back a question that was not answered yet, and returns false if it has been sent. Then its answer will be
// seen to when it comes: what it took is released.
func (t *tenure) withdraw(p part) bool { return t.lock.nodes[p.node].Crew().Withdraw(p.call) }

// silent tells that the node has not answered in time. It may carry out the question when its connection has long been given
// up, and nobody gets the answer: so it is sent the release right away as well, to be found beside the question.
func (p *part) silent() bool { return time.Since(p.asked) >= p.call.Patience }

// sendRelease releases node i's part in the background. A refusal is definite and is not released: the script that refuses
// has changed nothing.
func (t *tenure) sendRelease(i int, as string) {
	t.mu.Lock()
	patience := t.lock.options.nodeTimeout(t.longest)
	t.mu.Unlock()
	// When the client is closed the lease ends it.
	t.lock.nodes[i].Crew().Do(&crew.Call{Patience: patience, Run: func() { _ = t.release(i, as) }})
}

// release releases node i's part, and tells whether it was held. It may take as long as the node likes.
func (t *tenure) release(i int, as string) (held bool) {
	node := t.lock.nodes[i]
	reply, err := node.Release(as)
	if err != nil && !node.Hopeless(err) {
		t.mu.Lock()
		longest := t.longest
		t.mu.Unlock()
		node.Abandon(as, time.Now().Add(longest))
	}
	return err == nil && reply.Held
}

// Renewed is told that a part was renewed, which is the time to ask the nodes that are missing.
func (g *grant) Renewed() {
	t := g.tenure
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
		if g := t.parts[i].grant; g != nil && g.hold != nil {
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
