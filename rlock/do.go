package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotRun reports that [Do] or [With] did not call the function, because the lock was not
// acquired. The error also matches the reason, such as [ErrNotAcquired]. Check for ErrNotRun,
// because the function itself may return ErrNotAcquired.
var ErrNotRun = errors.New("the function was not called")

// Do runs fn under the lock. It acquires the lock with TryLock(ctx, wait, lease), calls fn with the
// context of the hold, and releases the hold when fn returns or panics. With [Forever], it waits
// until ctx ends.
//
// If the lock was not acquired, the error matches [ErrNotRun]. Otherwise Do returns the error of
// fn, unchanged if the release succeeded. If the release failed, Do joins its error, so you learn
// of a lost lock ([ErrLost]) even if fn did not notice. The work of fn may then have overlapped
// with the work of another holder. The error of fn never matches ErrNotRun, even if a call inside
// fn returned ErrNotRun.
func Do(
	ctx context.Context,
	lock Locker,
	wait time.Duration,
	lease Lease,
	fn func(context.Context) error,
) error {
	_, err := With(ctx, lock, wait, lease, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	})
	return err
}

// With is [Do] for a function with a result. It always returns the result of fn, even with an
// error, or the zero value if fn was not called.
func With[T any](ctx context.Context, lock Locker, wait time.Duration, lease Lease,
	fn func(context.Context) (T, error),
) (result T, err error) {
	hold, err := lock.TryLock(ctx, wait, lease)
	if err == nil && hold == nil {
		err = errNilHold // of a Locker that breaks its promise
	}
	if err != nil {
		return result, notRunError{err}
	}
	defer hold.UnlockTo(&err)
	result, err = fn(hold.Context())
	if errors.Is(err, ErrNotRun) {
		err = ranError{err} // the error of a call inside fn
	}
	return result, err
}

// notRunError is the error of [Do] or [With] if the function was not called.
type notRunError struct{ reason error }

func (e notRunError) Error() string   { return fmt.Sprintf("%v (%v)", e.reason, ErrNotRun) }
func (e notRunError) Unwrap() []error { return []error{ErrNotRun, e.reason} }

// ranError is the error of a function that was called. It hides an [ErrNotRun] from inside the
// function.
type ranError struct{ err error }

func (e ranError) Error() string      { return e.err.Error() }
func (e ranError) As(target any) bool { return errors.As(e.err, target) }
func (e ranError) Is(target error) bool {
	return target != ErrNotRun && errors.Is(e.err, target)
}
