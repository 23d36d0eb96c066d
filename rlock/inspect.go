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

// NoExpiry is the TTL of a held lock that never expires. Locks of this library always expire.
const NoExpiry = wire.NoExpiry

// Info is the state of a lock in Redis at the time of the call. It may be outdated when it is read:
// decide by acquiring, not by inspecting.
type Info struct {
	Name   string // the name of the lock
	Locked bool   // whether the lock is held
	// Owner is the owner, as "<client id>:<number>"; "" if the lock is free. If there are several
	// readers it is one of them.
	Owner string
	Count int // the number of levels that Owner holds
	// Readers has the owners that hold the read lock, with their levels; nil for other locks, and
	// if there are no readers.
	Readers map[string]int
	Mode    string // "read" or "write" if the name is in use as a read-write lock, else ""
	// TTL is what is left of the lease: 0 if the lock is free, [NoExpiry] if it never expires. For
	// a read-write lock it is that of its longest hold.
	TTL time.Duration
	// Queue has the owners that wait for a fair lock, the next one first, but at most 10,000; nil for
	// other locks.
	Queue []string
	// Token is the last one that a fenced lock has given out; 0 for other locks, and before the first.
	Token int64
}

// Info asks Redis for the state of the lock. Like the other methods that inspect, it returns when
// Redis has replied, when ctx ends, or after Options.CommandTimeout. The error is a *[ServerError]
// if Redis rejects the command, and [ErrOutcomeUnknown] if Redis does not reply. The code of the
// ServerError is NOTLOCK if the key is a hash with more fields than a lock has.
func (l *Lock) Info(ctx context.Context) (info Info, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return Info{}, err
	}
	info = Info{Name: l.name, Mode: state.Mode, TTL: state.TTL, Queue: state.Queue,
		Token: state.Token}
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

// IsLocked asks Redis whether the lock is held, as [Lock.Info] does.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	info, err := l.Info(ctx)
	return info.Locked, err
}

// TTL asks Redis, as [Lock.Info] does, how long the lock is still held: 0 if free, or [NoExpiry].
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	info, err := l.Info(ctx)
	return info.TTL, err
}

// HoldCount asks Redis, as [Lock.Info] does, how many levels ctx's owner holds; 0 without an owner.
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

// IsHeld asks Redis, as [Lock.Info] does, whether ctx's owner holds the lock; false without an
// owner. To know whether a hold can still be trusted, ask [Hold.Valid], which costs no command.
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
