package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/rlock"
)

// hook is what package rlock shows of itself.
var hook = hooks.Get[*rlock.Lock, *rlock.Hold]()

// Lock is all of several locks. It has no state of its own; any number of them may be made of the
// same parts. It is safe for concurrent use.
type Lock struct {
	name     string
	parts    []part // in the order in which they are taken, which is the same for everybody
	identity string // the same for locks of the same parts
	invalid  error  // why this can never be locked
}

var _ rlock.Locker = (*Lock)(nil)

// New returns the lock that is all of the given ones: locks of any kind, of one client or of
// several, also other MultiLocks, RedLocks and lockers of your own. One that is named twice is one
// part. It sends nothing, and what can never be locked is refused by the first use, with
// [rlock.ErrInvalid]: no locks at all; two of package rlock that keep each other out; locks on
// several Redises of which one has no name that all processes agree on, see rlock.Options.Server.
// Lockers of your own take part in the order by their Name, and by Server() string if they have
// such a method; no two should have the same. A RedLock and a plain lock that is one of its nodes,
// or two RedLocks that share nodes, keep each other out, and are not refused.
func New(locks ...rlock.Locker) *Lock {
	names := make([]string, 0, len(locks))
	for _, l := range locks {
		if !isNil(l) {
			names = append(names, l.Name())
		}
	}
	l := &Lock{name: strings.Join(names, "+")}
	l.parts, l.invalid = sortedParts(locks)
	var identity strings.Builder
	for _, p := range l.parts {
		fmt.Fprintf(&identity, "%#v", p.identity)
	}
	l.identity = identity.String()
	return l
}

// Name is the names of the locks, in the order in which they were given, with a "+" between them.
func (l *Lock) Name() string { return l.name }

// Lock acquires all of the locks, and blocks until it has them, or until ctx ends. It waits for one
// after the other, and meanwhile keeps those that it has.
//
// They are held for lease at most, or with [rlock.Watchdog] until they are released. With an owner
// in ctx that holds some of them, this adds a level to those. It returns what [rlock.Lock.Lock]
// returns for the part that could not be had, which the error names, and [rlock.ErrLost] if a part
// was lost while another was waited for. After an error nothing is held by this call; if a part
// could not be released the error says so as well.
func (l *Lock) Lock(ctx context.Context, lease time.Duration) (*rlock.Hold, error) {
	return l.acquire(
		ctx,
		lease,
		func(acquireCtx context.Context, of rlock.Locker) (*rlock.Hold, error) {
			return of.Lock(acquireCtx, lease)
		},
		true,
		time.Time{},
	)
}

// TryLock is [Lock.Lock] for at most wait, for all of the locks together. With [rlock.NoWait] each
// is tried once. If the server of a lock that was taken already hangs, the last step and giving
// back what was taken last up to Options.CommandTimeout each, beyond the wait.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (*rlock.Hold, error) {
	if wait < 0 {
		return nil, l.wrap(
			fmt.Errorf(
				"%w: the wait %v is negative: use Lock to wait without limit",
				rlock.ErrInvalid,
				wait,
			),
		)
	}
	var until time.Time
	if wait != rlock.NoWait {
		until = time.Now().Add(wait)
	}
	return l.acquire(
		ctx,
		lease,
		func(acquireCtx context.Context, of rlock.Locker) (*rlock.Hold, error) {
			left := wait
			if wait > 0 {
				// What is over counts as a moment, as it does for a single lock: a free lock is not
				// refused for want of time.
				left = max(time.Until(until), time.Nanosecond)
			}
			return of.TryLock(acquireCtx, left, lease)
		},
		wait != rlock.NoWait,
		until,
	)
}

func (l *Lock) acquire(ctx context.Context, lease time.Duration,
	acquire func(context.Context, rlock.Locker) (*rlock.Hold, error), waits bool, until time.Time,
) (*rlock.Hold, error) {
	if l.invalid != nil {
		return nil, l.wrap(l.invalid)
	}
	if _, ok := owner.From(ctx); !ok {
		ctx = rlock.WithOwner(ctx)
	}
	at := attempt{lock: l, lease: lease, acquire: acquire, waits: waits, until: until}
	hold, err := at.run(ctx)
	if err != nil {
		return nil, l.wrap(err)
	}
	return hold, nil
}

// Unlock releases the innermost level that ctx's owner has of all the locks together. See
// [rlock.Hold.Unlock]. It returns [rlock.ErrNotHeld] if ctx has no owner, or one that does not hold
// this MultiLock, and [rlock.ErrLost] once for each level that was lost, until the owner acquires
// it again; this process remembers its latest 1024 losses.
func (l *Lock) Unlock(ctx context.Context) error {
	token, ok := owner.From(ctx)
	if !ok {
		return l.wrap(
			fmt.Errorf(
				"%w: the context has no owner: pass the hold's context or one of rlock.WithOwner, or call Unlock on the hold",
				rlock.ErrNotHeld,
			),
		)
	}
	key := sessionKey{token, l.identity}
	holds := slices.Clone(sessions.get(key))
	slices.Reverse(holds)
	for _, hold := range append(holds, lostHolds.Of(key)...) { // innermost first, as they were lost
		err := hold.Unlock(ctx)
		// One that somebody else releases at this moment is passed over, and not one of which a
		// part was not held.
		var tried releaseError
		if !errors.Is(err, rlock.ErrNotHeld) || errors.As(err, &tried) {
			return err
		}
	}
	return l.wrap(fmt.Errorf("%w by the owner in this context", rlock.ErrNotHeld))
}

func (l *Lock) wrap(err error) error {
	return fmt.Errorf("holdfast: multilock %q: %w", l.name, err)
}
