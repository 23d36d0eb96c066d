package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// NoExpiry is the TTL of a held lock that never expires. Locks of holdfast always expire.
const NoExpiry = wire.NoExpiry

// Info is the state of a lock in Redis at the time of the call. The state may have changed when you
// read it, so acquire the lock to decide.
type Info struct {
	Name   string // the name of the lock
	Locked bool   // whether the lock is held
	// Owner is the owner, as "<client id>:<number>", or "" if the lock is free. Of several readers,
	// Owner is any reader.
	Owner string
	Count int // the number of holds of Owner
	// Readers has the owners of read holds, with the number of their holds. Readers is nil for other
	// locks and without readers.
	Readers map[string]int
	Mode    string // "read" or "write" if the name is in use as a read-write lock, else ""
	// TTL is the rest of the lease: 0 if the lock is free, [NoExpiry] if the lock never expires. For a
	// read-write lock, TTL belongs to the longest hold.
	TTL time.Duration
	// Queue has the owners that wait for a fair lock, at most 10,000, the next owner first. Queue is
	// nil for other locks.
	Queue []string
	// Token is the latest token of a fenced lock, or 0 before the first acquisition and for other
	// locks.
	Token int64
}

// Info asks Redis for the state of the lock. Info blocks until Redis responds, ctx ends, or
// Options.CommandTimeout passes. The error is a *[ServerError] if Redis rejects the command, and
// matches [ErrOutcomeUnknown] if Redis does not respond. The ServerError has the code NOTLOCK if
// the key is a hash with more fields than a lock has.
func (l *Lock) Info(ctx context.Context) (info Info, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return Info{}, err
	}
	info = Info{Name: l.name, Mode: state.Mode, TTL: state.TTL, Queue: state.Queue,
		Token: state.Fence}
	for _, h := range state.Holds {
		info.Locked, info.Owner, info.Count = true, h.Owner, h.Count
		if l.mode == sharedMode {
			if info.Readers == nil {
				info.Readers = make(map[string]int)
			}
			info.Readers[h.Owner] = h.Count
		}
	}
	return info, nil
}

// IsLocked asks Redis whether the lock is held, and blocks like [Lock.Info].
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	info, err := l.Info(ctx)
	return info.Locked, err
}

// TTL asks Redis for the rest of the lease, and blocks like [Lock.Info]. The result is 0 if the
// lock is free, or [NoExpiry].
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	info, err := l.Info(ctx)
	return info.TTL, err
}

// HoldCount asks Redis how many holds the owner in ctx has, and blocks like [Lock.Info]. The result
// is 0 if ctx has no owner.
func (l *Lock) HoldCount(ctx context.Context) (count int, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return 0, err
	}
	token, _ := owner.From(ctx)
	if a := l.heldBy(token); a != nil { // nobody has the zero token
		for _, h := range state.Holds {
			if h.Owner == a.owner {
				return h.Count, nil
			}
		}
	}
	return 0, nil
}

// IsHeld asks Redis whether the owner in ctx holds the lock, and blocks like [Lock.Info]. The
// result is false if ctx has no owner. To ask whether you can still trust a hold, call
// [Hold.Valid], which sends nothing.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	count, err := l.HoldCount(ctx)
	return count > 0, err
}

// inspect returns the state of the lock, without holds of the other mode.
func (l *Lock) inspect(ctx context.Context) (state lua.State, err error) {
	b := l.exchangeBudget(ctx)
	return l.inspectWithin(b)
}

// exchangeBudget returns the budget of a command that leaves nothing to clean up.
func (l *Lock) exchangeBudget(ctx context.Context) *wait.Budget {
	return wait.NewBudget(ctx, l.client.closing, l.client.options.CommandTimeout)
}

// inspectWithin is [Lock.inspect] with a budget.
func (l *Lock) inspectWithin(b *wait.Budget) (lua.State, error) {
	state, err := exchange(b, l, transport.Acquire, func(ctx context.Context) (lua.State, error) {
		return l.traits.inspect(ctx, l.client.redis, l.name)
	})
	state.Holds = slices.DeleteFunc(state.Holds, func(h lua.Hold) bool {
		return l.sharesKey && h.Write != (l.mode == exclusiveMode)
	})
	return state, err
}

// exchange runs a command that leaves nothing to clean up.
func exchange[T any](b *wait.Budget, l *Lock, kind transport.Kind,
	command func(context.Context) (T, error),
) (value T, err error) {
	if l.invalid != nil {
		return value, l.invalid
	}
	c := l.client
	err = b.Err()
	if err != nil {
		return value, err
	}
	value, _, err = transport.Do(c.calls, kind, b, command, func(T, error) {})
	if err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown {
		err = b.Because(fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
	}
	return value, err
}
