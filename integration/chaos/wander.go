package chaos

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"holdfast/integration/history"
	"holdfast/rlock"
)

// owners has the owners that the workers of a process share, by lock.
type owners struct {
	mu   sync.Mutex
	last map[history.Lock]*owner // guarded by mu
}

// owner is an owner of one lock.
type owner struct {
	ctx   context.Context
	root  int             // the acquisition that the history takes for the outermost
	until history.Instant // when workers begin to use another owner
}

// sharedFor is how long workers share an owner, so that not every hold is a level of another.
const sharedFor = 10 * time.Second

func (o *owners) of(l history.Lock, r *recorder) *owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	if one := o.last[l]; one != nil && history.Now() < one.until {
		return one
	}
	if o.last == nil {
		o.last = make(map[history.Lock]*owner)
	}
	o.last[l] = &owner{rlock.WithOwner(context.Background()), r.next(), history.Now().Add(sharedFor)}
	return o.last[l]
}

// wander does what sections do not: it shares its owners with other workers, cancels contexts, has
// several holds, ends them in any order, and extends, leaves or detaches them.
func (w *worker) wander(ctx context.Context) {
	var holds []*attempt
	for ctx.Err() == nil {
		if i := len(holds); i < 3 && w.oneIn(2) {
			if a := w.join(ctx); a != nil {
				holds = append(holds, a)
			}
		} else if i > 0 && w.part(holds[w.dice.IntN(i)]) {
			holds = slices.DeleteFunc(holds, func(a *attempt) bool { return a.over })
		}
		w.sleep(ctx.Done(), w.pause())
		for _, a := range holds {
			a.check()
		}
	}
	for _, a := range holds {
		w.release(a)
	}
}

// join acquires a lock, perhaps for a shared owner.
func (w *worker) join(ctx context.Context) *attempt {
	locks := w.choose()
	lease := w.lease()
	e := history.Event{Locks: locks, Lease: time.Duration(lease), Fixed: lease != rlock.Watchdog,
		Wait: w.upTo(w.client.plan.Wait)}
	if lease == rlock.Watchdog {
		e.Lease = w.client.plan.WatchdogLease
	}
	if len(locks) == 1 && locks[0].Kind != history.Read && w.oneIn(2) { // a reader may not write
		one := w.client.owners.of(locks[0], w.client.record)
		ctx, e.Root = one.ctx, one.root
	}
	if w.oneIn(4) {
		var cancel func()
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(w.upTo(e.Wait), cancel) // perhaps while it is held
	}
	if w.oneIn(4) {
		e.Wait = 0
	}
	return w.ask(ctx, e, false)
}

// part ends a hold, or extends it. It reports whether the hold is over.
func (w *worker) part(a *attempt) bool {
	a.check()
	switch lease := shortestLease + w.upTo(a.lease); {
	case w.oneIn(4) && a.hold.Extend(context.Background(), rlock.Lease(min(lease, a.lease))) == nil:
		a.check()
		a.extended = true
		return false
	case a.fixed && !a.extended && w.oneIn(4):
		a.hold.Leave()
	case a.fixed && !a.extended && w.oneIn(3):
		if _, err := a.hold.Detach(); errors.Is(err, rlock.ErrInvalid) {
			return false // neither read-write locks nor nested levels can be detached
		}
	default:
		w.release(a)
	}
	a.over = true
	return true
}
