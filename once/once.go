package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/rlock"
)

var (
	// ErrMismatch reports that the result of the key was stored for a request with another
	// [Fingerprint]. The function was not called, unless the error also matches [ErrNotRecorded].
	ErrMismatch = errors.New("the key was used for another request")

	// ErrNotRecorded reports that the function succeeded, but that the result could not be stored.
	// The error also matches the reason, such as [rlock.ErrLost]. The effects of the function remain,
	// and the next caller runs its function again. [Do] returns the result of the function together
	// with the error.
	ErrNotRecorded = errors.New("the result was not stored")
)

// Do returns the stored result of a key. Without a stored result, Do runs fn under a lock, stores
// the result of fn for ttl, and returns the result. While another caller with the same key runs its
// function, Do waits. The package documentation lists the promises.
//
// Do blocks until there is a result, fn has failed, or ctx ends, even while Redis is down. Waiting
// callers do not poll. Each client lets only one caller of a key at a time ask Redis, so a thousand
// callers send a few commands. If the result is already stored, Do sends a single command.
//
// The context of fn derives from ctx, and carries the owner of the lock. This context ends when ctx
// ends or the lock is lost, and never because a waiting caller leaves. When fn has returned, Do
// stores the result even if ctx has ended. While ctx lasts, Do retries a failed store until the
// lock is lost. If Redis hangs, the store and the release of the lock each take up to
// Options.CommandTimeout of the client, also after the end of ctx.
//
// Do returns
//   - the error of fn. Do then stores nothing, and the next waiting caller runs its function;
//   - [ErrMismatch] if the result belongs to a request with another [Fingerprint];
//   - [ErrNotRecorded] if fn succeeded but the result could not be stored. If the lock was lost and
//     another caller has stored a result in the meantime, Do returns that result without an error;
//   - the errors of [rlock.Lock.Lock], such as a *[rlock.HeldError] if ctx ended while another
//     caller ran its function, and a *[rlock.ServerError] if Redis rejects a command;
//   - [rlock.ErrLost] with [rlock.ErrNotRun] if the lock was lost before fn was called;
//   - [rlock.ErrDeadlock] if ctx is the context of fn for the same key. Do does not detect cycles
//     of several keys;
//   - [rlock.ErrInvalid] for an empty key, a key with unpaired braces on a cluster, and a ttl below
//     1 ms. Redis counts whole milliseconds.
//
// The error matches [rlock.ErrNotRun] if this call did not call fn. If this call did call fn, Do
// returns the result of fn together with the error. Without an error, all callers get a result
// decoded from the same bytes, even the caller that ran fn. See [Codec].
//
// ttl begins when the result is stored. If callers pass different values, the ttl of the caller
// that ran fn counts. Use each key with a single type T. Do is safe for concurrent use. If fn
// panics, Do stores nothing and releases the lock, and the panic continues.
func Do[T any](ctx context.Context, client *rlock.Client, key string, ttl time.Duration,
	fn func(ctx context.Context) (T, error), options ...Option,
) (result T, err error) {
	c := call{settings: newSettings(options), key: key, ttl: ttl}
	if err := c.open(client); err != nil {
		return result, c.notRun(err)
	}
	record, err := c.do(ctx, func(ctx context.Context) ([]byte, error) {
		var err error
		result, err = fn(ctx)
		if err != nil {
			return nil, err
		}
		data, err := c.marshal(result)
		if err != nil {
			return nil, c.wrap(fmt.Errorf("%w: encode it: %w", ErrNotRecorded, err))
		}
		return data, nil
	})
	if err != nil {
		return result, err
	}
	var stored T
	if err := c.unmarshal([]byte(record.Result), &stored); err != nil {
		err = fmt.Errorf("decode the stored result: %w; use a key for one type only", err)
		if !c.ran {
			return result, c.notRun(err)
		}
		return result, c.wrap(err)
	}
	return stored, nil
}

// Token returns the fencing token of a run. Pass the context of fn, or a context derived from it.
// For other contexts, Token returns 0. The token is larger than the token of any earlier run of the
// key, even after the result has expired, as long as Redis keeps its data or its clock is not set
// back. Do not compare the tokens of different keys.
//
// Send the token with each write to the resource, and make the resource reject a token smaller than
// the largest so far for the key. Then a paused run that has lost its lock does no harm.
func Token(ctx context.Context) int64 {
	if r, _ := ctx.Value(running{}).(*running); r != nil {
		return r.token
	}
	return 0
}
