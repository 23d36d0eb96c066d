package rlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/seam"
	"holdfast/watchdog"
)

// holding is one owner's possession of one lock, from the outermost level to the last release. There is one place that
// owns its state, and this is it: it registers with the watchdog when it begins, leaves it before it sends the last
// release, and takes each step from its seat's turn.
type holding struct {
	client  *Client
	lock    *Lock
	seat    *seat
	token   owner.Token // in this process
	owner   string      // of this holding, in Redis
	fence   int64       // its number, if the lock is fenced
	adrift  *bid        // an attempt to take the lock with it may be executed still
	journey journey     // of the lock
	told    bool        // a message may come still that says that it was given the lock
	lease   watchdog.Lease

	// part is set if this is what a RedLock has on one node: its loss is not that of the lock.
	part seam.Part

	// lasts is the longest lease, in nanoseconds, that Redis may give it on its own account: by a renewal, or by a nested
	// lock, that is executed without our hearing of it. 0 while there is neither.
	lasts atomic.Int64

	mu     sync.Mutex
	levels []*Hold // guarded by mu; those not released, outermost first
	ended  error   // guarded by mu; why nothing is held any more

	// Room for what nearly every holding has, so that it is one piece of memory.
	outermost Hold
	level1    [1]*Hold
	home      seat
}

var _ Tenure = (*holding)(nil)

// Name is the lock's.
func (g *holding) Name() string { return g.lock.name }

// Owner is that in Redis.
func (g *holding) Owner() string { return g.owner }

// Token is the fence.
func (g *holding) Token() int64 { return g.fence }

// Deadline is until when the lease can be trusted.
func (g *holding) Deadline() time.Time { return g.lease.Deadline() }

// level makes a level, which is still to be put among levels.
func (g *holding) level(ctx context.Context, renew bool) *Hold {
	h := &g.outermost
	if h.tenure != nil {
		h = new(Hold)
	}
	h.tenure, h.parent, h.owner, h.renew = g, ctx, g.token, renew
	return h
}

// begin starts to watch over what Redis has given, and returns the first level.
func (g *holding) begin(ctx context.Context, deadline time.Time, renew bool) *Hold {
	c, level := g.client, g.level(ctx, renew)
	g.levels = append(g.level1[:0], level)
	if renew {
		g.mayLast(c.options.WatchdogLease)
	}
	g.lease.Group = c.wire.node(g.lock.name)
	g.lease.Value = g
	g.lease.OnLost = g.lost
	c.losses.Forget(g.at())
	g.seat.hold(g)
	c.watchdog.Add(&g.lease, deadline, renew)
	return level
}

// push adds a level, after Redis has it.
func (g *holding) push(ctx context.Context, deadline time.Time, renew bool) (*Hold, error) {
	g.mu.Lock()
	level := g.level(ctx, renew)
	if g.ended != nil {
		g.mu.Unlock()
		return nil, g.conclude()
	}
	g.levels = append(g.levels, level)
	g.mu.Unlock()
	g.extend(deadline)
	if renew {
		g.mayLast(g.client.options.WatchdogLease)
		g.client.watchdog.SetRenew(&g.lease, true)
	}
	return level, nil
}

// extend notes that Redis keeps the lock until deadline.
func (g *holding) extend(deadline time.Time) { g.client.watchdog.Extend(&g.lease, deadline) }

// depth is the number of levels, 0 when the holding has ended.
func (g *holding) depth() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.levels)
}

// why is why nothing is held any more; nil if something is.
func (g *holding) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

// conclude waits until all levels have ended, and returns why; nil if the lock is still held.
func (g *holding) conclude() error {
	err := g.why()
	if err != nil {
		g.end(err)
	}
	return err
}

// leaveInnermost picks the level that was taken last and is not being released, for the caller to give it back; nil if
// there is none. Of callers at the same time each gets another.
func (g *holding) leaveInnermost() *Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, level := range slices.Backward(g.levels) {
		if level.leave() {
			return level
		}
	}
	return nil
}

// end ends all levels; this process holds nothing any more. It returns false if another reason came
// first, but not before all levels have ended. The innermost is the first to end: its context mostly
// derives from those around it, and must not end before the hold itself has.
func (g *holding) end(reason error) bool {
	g.mu.Lock()
	first := g.ended == nil
	if first {
		g.ended = reason
		if errors.Is(reason, ErrLost) {
			// Before anybody hears of it: the owner's next attempt must not find what it was told is lost.
			g.remember()
			g.seat.drop(g)
		}
	}
	reason = g.ended
	var few [4]*Hold // mostly enough, and not garbage
	levels := append(few[:0], g.levels...)
	g.mu.Unlock()
	for _, level := range slices.Backward(levels) {
		level.end(reason)
	}
	if !first {
		return false
	}
	if g.part != nil {
		if errors.Is(reason, ErrReleased) { // by Options.ReleaseOnClose, or by the part itself, which knows better
			reason = ErrClosed
		}
		g.part.Ended(reason)
	}
	return true
}

// lost is told by the watchdog, or by an answer that says so, that the lock cannot be trusted any more. It does not block:
// the contexts of other holds end on the same goroutine.
func (g *holding) lost(reason error) {
	g.client.watchdog.Remove(&g.lease)
	lost := &LostError{Lock: g.lock.name, Reason: reason}
	if errors.Is(reason, watchdog.ErrGone) {
		lost.Reason = g.goneReason()
	}
	if !g.end(lost) {
		return
	}
	g.report(lost)
	g.undoAdrift()
	g.seat.settle()
	if errors.Is(reason, errLoose) || errors.Is(reason, watchdog.ErrExpired) && (g.lasts.Load() > 0 || g.lock.outlived()) {
		// A command whose answer never came may have kept the lock for an owner that has given it
		// up. Not if Redis has said that it is gone.
		g.client.janitor.add(g.leftover())
	}
}

// goneReason is why a hold was lost that Redis does not have any more.
func (g *holding) goneReason() error {
	if g.mayBeTaken() {
		return errLoose
	}
	return watchdog.ErrGone
}

// mayBeTaken tells whether a loose release may take this hold, or has.
func (g *holding) mayBeTaken() bool { return g.lock.side == shared && g.seat.isLoose(g.owner) }

// report tells the operator of a loss.
func (g *holding) report(lost *LostError) {
	if g.part != nil {
		return
	}
	g.client.warn(lost.Error(), "lock", g.lock.name, "owner", g.owner)
}

// mayLast notes that Redis may be asked to keep the lock for lease, before it is.
func (g *holding) mayLast(lease time.Duration) {
	for {
		longest := g.lasts.Load()
		if int64(lease) <= longest || g.lasts.CompareAndSwap(longest, int64(lease)) {
			return
		}
	}
}

// leftover is what Redis may keep of a holding that is over.
func (g *holding) leftover() leftover {
	until := g.lease.Deadline()
	if kept := time.Now().Add(time.Duration(g.lasts.Load())); kept.After(until) {
		until = kept
	}
	if g.lock.outlived() {
		until = until.Add(g.client.options.CommandTimeout)
	}
	l := leftover{lock: g.lock, bid: bid{owner: g.owner}, until: until}
	if g.lock.outlived() {
		l.seat = g.seat
	}
	return l
}
