package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/owner"
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
	// Owner has it, as "<client id>:<token>"; "" if the lock is free. Of several readers it is one.
	Owner string
	// Count is the number of levels the owner holds.
	Count int
	// Readers are the owners that hold the read lock, with their levels; nil for other locks, and when nobody reads.
	Readers map[string]int
	// Mode is "read" or "write" if the name is in use as a read-write lock, else "".
	Mode string
	// TTL is what is left of the lease: 0 if the lock is free, [NoExpiry] if it never expires. A read-write lock has one,
	// that of its longest hold.
	TTL time.Duration
	// Queue are the owners that wait for a fair lock, the next one first; nil for other locks.
	Queue []string
	// Token is the last one that a fenced lock has given; 0 for other locks, and before the first.
	Token int64
}

// Info asks Redis who holds the lock. Like all methods that look, it blocks until ctx ends, and at most
// Options.CommandTimeout, and returns a *[ServerError] if Redis refuses, [ErrOutcomeUnknown] if it does not answer.
func (l *Lock) Info(ctx context.Context) (info Info, err error) {
	defer wrap(&err, l.name)
	state, err := l.inspect(ctx)
	if err != nil {
		return Info{}, err
	}
	info = Info{Name: l.name, Mode: state.Mode, TTL: state.TTL, Queue: state.Queue, Token: state.Token}
	for _, h := range state.Holds {
		if !l.has(h) {
			continue
		}
		info.Locked, info.Owner, info.Count = true, h.Owner, h.Count
		if l.side == shared {
			if info.Readers == nil {
				info.Readers = make(map[string]int)
			}
			info.Readers[h.Owner] = h.Count
		}
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
	if token, named := owner.From(ctx); named {
		if h := l.client.seats.find(l.place(token), l.side); h != nil {
			for _, hold := range state.Holds {
				if l.has(hold) && hold.Owner == h.owner {
					return hold.Count, nil
				}
			}
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
		return l.kind.inspect(l.client.redis)
	})
}

// has tells whether a hold that Redis has under the name of this lock is one of this lock, and not of the other side of a
// read-write lock.
func (l *Lock) has(h lua.Hold) bool {
	return !l.outlived() || h.Write == (l.side == exclusive)
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
