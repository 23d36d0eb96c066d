package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// NoExpiry is the TTL of a lock that is held and never expires. Locks of this library always expire.
const NoExpiry = lua.NoExpiry

// Info is what Redis knew about a lock when it was asked. By the time it is read it may be out of date: decide by
// acquiring, not by looking.
type Info struct {
	// Name of the lock.
	Name string
	// Locked tells whether somebody holds it.
	Locked bool
	// Owner has it, as "<client id>:<token>"; "" if the lock is free.
	Owner string
	// Count is the number of levels the owner holds.
	Count int
	// Mode is "read" or "write" if the name is in use as a read-write lock, else "".
	Mode string
	// TTL is what is left of the lease: 0 if the lock is free, [NoExpiry] if it never expires.
	TTL time.Duration
}

// Info asks Redis who holds the lock. Like all methods that look, it blocks until ctx ends, and at most
// Options.CommandTimeout, and returns a *[ServerError] if Redis refuses, [ErrOutcomeUnknown] if it does not answer.
func (l *Lock) Info(ctx context.Context) (info Info, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return Info{}, err
	}
	info = Info{Name: l.name, Locked: len(state.Counts) > 0, Mode: state.Mode, TTL: state.TTL}
	for owner, count := range state.Counts {
		info.Owner, info.Count = owner, count
	}
	return info, nil
}

// IsLocked asks Redis whether anybody holds the lock. See [Lock.Info] for when it blocks and what it returns.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	info, err := l.Info(ctx)
	return info.Locked, err
}

// TTL asks Redis for how long the lock is still held: 0 if it is free, [NoExpiry] if it never expires. See [Lock.Info] for
// when it blocks and what it returns.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	info, err := l.Info(ctx)
	return info.TTL, err
}

// HoldCount asks Redis how many levels ctx's owner holds; 0 if ctx has no owner. See [Lock.Info] for when it blocks and what
// it returns.
func (l *Lock) HoldCount(ctx context.Context) (count int, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return 0, err
	}
	if token, named := tokenFrom(ctx); named {
		if h := l.client.seats.find(place{l.name, token}); h != nil {
			return state.Counts[h.owner], nil
		}
	}
	return 0, nil
}

// IsHeld asks Redis whether ctx's owner holds the lock; false if ctx has no owner. To know whether a hold can still be
// trusted, ask [Hold.Valid], which costs no command. See [Lock.Info] for when it blocks and what it returns.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	count, err := l.HoldCount(ctx)
	return count > 0, err
}

func (l *Lock) inspect(ctx context.Context) (lua.State, error) {
	return exchange(ctx, l, func() (lua.State, error) {
		return lua.Inspect(context.Background(), l.client.redis, l.name)
	})
}

// exchange does one thing on Redis that leaves nothing to clean up.
func exchange[T any](ctx context.Context, l *Lock, op func() (T, error)) (value T, err error) {
	if l.invalid != nil {
		return value, l.invalid
	}
	p := l.client.patience(ctx, l.client.options.CommandTimeout)
	defer p.stop()
	if err := p.reason(); err != nil {
		return value, err
	}
	value, left, err := await(l.client, p, func() (value T, err error) {
		if err := l.client.wire.ready(context.Background()); err != nil {
			return value, err
		}
		return op()
	}, func(T, error) {})
	if !left {
		if err != nil && lua.ClassOf(err) == lua.Unknown {
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return value, err
	}
	if reason := p.reason(); reason != nil {
		return value, fmt.Errorf("%w: %w", reason, ErrOutcomeUnknown)
	}
	return value, fmt.Errorf("%w: %w", ErrOutcomeUnknown, errNoAnswer)
}
