package multilock

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/losses"
	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/wait"
	"holdfast/rlock"
)

// sessionKey identifies what one owner has with one MultiLock.
type sessionKey struct {
	token owner.Token
	lock  string // the identity of the lock
}

// owned is what one owner has with one MultiLock.
type owned struct {
	holds  []*rlock.Hold // innermost first, for Unlock without a hold
	traced atomic.Value  // for package rlock
}

// sessions has what each owner in this process has.
var sessions = session.New[sessionKey, owned]()

// lostHolds has lost holds until they are unlocked, for Unlock without a hold.
var lostHolds losses.Memory[sessionKey, *rlock.Hold]

// acquisition implements the hold of all parts, as an [rlock.Acquisition].
type acquisition struct {
	lock    *Lock
	parts   []*rlock.Hold // in the order of lock.parts
	session *session.Session[sessionKey, owned]
	hold    *rlock.Hold // a second Hold, so that the caller's Hold can become unreachable
	end     func(reason error)
	detach  func()       // removes the hold from its session; more calls do nothing
	live    atomic.Int32 // parts that have not ended
}

var _ rlock.Acquisition = (*acquisition)(nil)

// newHold returns the hold of all parts, and whether the owner has other holds. ctx has an owner.
func newHold(ctx context.Context, l *Lock, parts []*rlock.Hold) (_ *rlock.Hold, nested bool) {
	token, _ := owner.From(ctx)
	key := sessionKey{token, l.identity}
	a := &acquisition{lock: l, parts: parts, session: sessions.Open(key)}
	hold, kept, end := hook.NewHold(ctx, a, parts)
	a.hold, a.end = kept, end
	a.live.Store(int32(len(parts)))
	lostHolds.Forget(key)
	a.session.Do(func(ow *owned) {
		nested = slices.ContainsFunc(ow.holds, func(h *rlock.Hold) bool { return h.Err() == nil })
		ow.holds = slices.Insert(ow.holds, 0, a.hold)
	})
	a.detach = sync.OnceFunc(func() {
		a.session.Do(func(ow *owned) {
			ow.holds = slices.DeleteFunc(ow.holds, func(h *rlock.Hold) bool { return h == a.hold })
		})
		a.session.Close()
	})
	for _, p := range parts {
		hook.OnEnd(p, func(reason error) { a.partEnded(p, reason) })
	}
	return hold, nested
}

// partEnded ends the hold because a part has ended. The session keeps the hold until its last part
// has ended.
func (a *acquisition) partEnded(part *rlock.Hold, reason error) {
	if errors.Is(reason, rlock.ErrReleased) && !hook.IsClosing(part) {
		reason = partReleased(part.Name()) // no effect after Release, which has ended the hold
	}
	if errors.Is(reason, rlock.ErrLost) {
		reason = &rlock.LostError{Lock: a.lock.name, Reason: reason} // reason names the part
	}
	a.end(reason)
	if a.live.Add(-1) > 0 {
		return
	}
	if errors.Is(a.hold.Err(), rlock.ErrLost) {
		lostHolds.Add(a.session.Key(), a.hold)
	}
	a.detach()
}

// TracedLevels returns where package rlock counts traced levels. The holds of an owner count as
// levels of one acquisition.
func (a *acquisition) TracedLevels() (levels *atomic.Value) {
	a.session.Do(func(ow *owned) { levels = &ow.traced })
	return levels
}

func (a *acquisition) Name() string { return a.lock.name }

// Owner returns the owner of the first part. Each part has its own owner.
func (a *acquisition) Owner() string { return a.parts[0].Owner() }

// Token returns the token of the fenced part; 0 unless exactly one part is fenced.
func (a *acquisition) Token() (token int64) {
	for _, p := range a.parts {
		if token != 0 && p.Token() != 0 {
			return 0
		}
		token = cmp.Or(token, p.Token())
	}
	return token
}

func (a *acquisition) Deadline() time.Time { return earliest(a.parts) }

func (a *acquisition) Extend(ctx context.Context, lease rlock.Lease) error {
	return extend(ctx, lease, a.parts)
}

// Release releases all parts, even if some of them fail.
func (a *acquisition) Release(h *rlock.Hold) error {
	a.end(rlock.ErrReleased)
	a.detach()
	errs := release(a.lock.parts, a.parts)
	for i, err := range errs {
		if errors.Is(err, rlock.ErrNotHeld) && errors.Is(h.Err(), rlock.ErrLost) {
			errs[i] = partReleased(a.parts[i].Name())
		}
	}
	lostHolds.Remove(a.session.Key(), a.hold) // the end of the last part may have added it
	if err := errors.Join(errs...); err != nil {
		return releaseError{err}
	}
	return nil
}

// Leave lets the leases of all parts run out.
func (a *acquisition) Leave(*rlock.Hold) {
	a.end(rlock.ErrReleased)
	a.detach()
	defer lostHolds.Remove(a.session.Key(), a.hold)
	wait.Together(len(a.parts), func(i int) { a.parts[i].Leave() })
}

// releaseError marks the error of a release that was tried. Without the mark, [rlock.ErrNotHeld]
// means that the hold was released before. With the mark, it means that a part was not held any
// more.
type releaseError struct{ error }

func (e releaseError) Unwrap() error { return e.error }

// Error leaves out the prefix of the parts' errors, because the error of the MultiLock has the
// prefix already.
func (e releaseError) Error() string {
	return strings.ReplaceAll(e.error.Error(), "holdfast: ", "")
}

// release releases the holds of the first len(holds) parts, with one script for each batch, and
// runs all scripts concurrently. It returns one error for each hold.
func release(parts []part, holds []*rlock.Hold) []error {
	errs := make([]error, len(holds))
	batches := make(map[any][]int) // indexes of the parts that one script can release
	for i, p := range parts[:len(holds)] {
		var batch any = i // alone
		if p.Batched {
			batch = p.Batch
		}
		batches[batch] = append(batches[batch], i)
	}
	calls := slices.Collect(maps.Values(batches))
	wait.Together(len(calls), func(n int) {
		indexes := calls[n]
		if i := indexes[0]; len(indexes) == 1 {
			errs[i] = holds[i].Unlock()
			return
		}
		batch := make([]*rlock.Hold, len(indexes))
		for i, index := range indexes {
			batch[i] = holds[index]
		}
		for i, err := range hook.ReleaseBatch(batch) {
			errs[indexes[i]] = err
		}
	})
	return errs
}
