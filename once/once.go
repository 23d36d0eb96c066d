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
	// [Fingerprint]. The function was not called.
	ErrMismatch = errors.New("the key was used for another request")

	// ErrNotRecorded reports that the function returned a result, but that the result could not be
	// stored. The error also matches the reason, such as [rlock.ErrLost]. What the function has done
	// stays done, and the next caller runs its function again. [Do] returns the result of the
	// function with the error.
	ErrNotRecorded = errors.New("the result was not stored")
)

// Do returns the stored result of a key. If there is none, Do runs fn under a lock, stores its
// result for ttl, and returns it. While another caller with the key runs its function, Do waits.
// See the package documentation for what that promises.
//
// Do blocks until there is a result, fn has failed, or ctx ends, also while Redis is down. Waiting
// callers do not poll. A client lets one caller of a key at a time ask Redis, so a thousand callers
// send a few commands. A caller whose result is stored already sends one command.
//
// The context of fn derives from ctx, and carries the owner of the lock. It ends when ctx ends or
// the lock is lost, and never because of callers that only wait. When fn has returned, Do stores
// the result even if ctx has ended, and then blocks for up to Options.CommandTimeout of the client
// longer. While ctx lasts, Do repeats a store that failed until the lock is lost.
//
// Do returns
//   - the error of fn. Nothing is stored then, and the next waiting caller runs its function;
//   - [ErrMismatch] if the result belongs to a request with another [Fingerprint];
//   - [ErrNotRecorded] if fn succeeded and its result could not be stored. If the lock was lost and
//     another caller has stored a result meanwhile, Do returns that result without an error;
//   - the errors of [rlock.Lock.Lock], such as a *[rlock.HeldError] if ctx ended while another
//     caller ran its function, and a *[rlock.ServerError] if Redis rejects a command;
//   - [rlock.ErrLost] with [rlock.ErrNotRun] if the lock was lost before fn was called;
//   - [rlock.ErrDeadlock] if ctx is the context of fn for the same key. Do does not find cycles of
//     several keys;
//   - [rlock.ErrInvalid] for an empty key, or a ttl below 1 ms. Redis counts whole milliseconds.
//
// The error matches [rlock.ErrNotRun] if this call did not call fn. If fn was called, Do returns
// its result even with an error. Otherwise all callers get a result that was decoded from the same
// bytes, even the caller that ran fn. See [Codec].
//
// ttl begins when the result is stored, and the ttl of the caller that ran fn counts. Use a key for
// one type T only. Do is safe for concurrent use. If fn panics, Do stores nothing and releases the
// lock.
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

// Token returns the fencing token of the run whose function got ctx or a context derived from it,
// and 0 for other contexts. The token is larger than the token of any earlier run of the key, even
// after the lifetime of the key, as long as Redis keeps its data or its clock is not set back.
// Tokens of different keys do not compare.
//
// Send the token with each write to the resource, and make the resource reject a token smaller than
// the largest so far for the key. Then a paused run that has lost its lock does no harm.
func Token(ctx context.Context) int64 {
	if r, _ := ctx.Value(running{}).(*running); r != nil {
		return r.token
	}
	return 0
}
