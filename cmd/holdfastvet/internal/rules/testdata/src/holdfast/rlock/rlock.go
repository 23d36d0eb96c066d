// Package rlock stands in for the real one.
package rlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	NoWait   time.Duration = 0
	Forever  time.Duration = 1<<63 - 1
	Watchdog time.Duration = -1
)

var (
	ErrNotAcquired = errors.New("")
	ErrNotHeld     = errors.New("")
	ErrLost        = errors.New("")
	ErrNotRun      = errors.New("")
	ErrInvalid     = errors.New("")
	ErrClosed      = errors.New("")
)

type Options struct{ WatchdogLease time.Duration }

type Locker interface {
	Lock(ctx context.Context, lease time.Duration) (*Hold, error)
	TryLock(ctx context.Context, wait, lease time.Duration) (*Hold, error)
}

type HeldError struct {
	Lock  string
	Owner string
	TTL   time.Duration
}

func (e *HeldError) Error() string { return "" }

type Client struct{ _ int }

func New(redis rueidis.Client, options Options) (*Client, error) { return nil, nil }

func (c *Client) Attach(ctx context.Context, token string, lease time.Duration) (*Hold, error) {
	return nil, nil
}
func (c *Client) Close(ctx context.Context) error             { return nil }
func (c *Client) NewFairLock(name string) *Lock               { return nil }
func (c *Client) NewFencedLock(name string) *Lock             { return nil }
func (c *Client) NewLock(name string) *Lock                   { return nil }
func (c *Client) NewNonReentrantLock(name string) *Lock       { return nil }
func (c *Client) NewReadWriteLock(name string) *ReadWriteLock { return nil }

type Lock struct{ _ int }

func (l *Lock) ForceUnlock(ctx context.Context) (held bool, err error) { return false, nil }
func (l *Lock) IsHeld(ctx context.Context) (bool, error)               { return false, nil }
func (l *Lock) IsLocked(ctx context.Context) (bool, error)             { return false, nil }
func (l *Lock) Name() string                                           { return "" }
func (l *Lock) Lock(ctx context.Context, lease time.Duration) (hold *Hold, err error) {
	return nil, nil
}
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (hold *Hold, err error) {
	return nil, nil
}
func (l *Lock) Unlock(ctx context.Context) (err error) { return nil }

type ReadWriteLock struct{ _ int }

func (rw *ReadWriteLock) Read() *Lock  { return nil }
func (rw *ReadWriteLock) Write() *Lock { return nil }

type Hold struct{ _ int }

func (h *Hold) Context() context.Context                                    { return nil }
func (h *Hold) Deadline() time.Time                                         { return time.Time{} }
func (h *Hold) Detach() (string, error)                                     { return "", nil }
func (h *Hold) Done() <-chan struct{}                                       { return nil }
func (h *Hold) Err() error                                                  { return nil }
func (h *Hold) Extend(ctx context.Context, lease time.Duration) (err error) { return nil }
func (h *Hold) Leave()                                                      {}
func (h *Hold) Name() string                                                { return "" }
func (h *Hold) Owner() string                                               { return "" }
func (h *Hold) Token() int64                                                { return 0 }
func (h *Hold) Unlock(ctx context.Context) (err error)                      { return nil }
func (h *Hold) UnlockTo(ctx context.Context, err *error)                    {}
func (h *Hold) Valid() bool                                                 { return false }

func AsSyncLocker(ctx context.Context, lock Locker, lease time.Duration) sync.Locker { return nil }

func Detached(ctx context.Context) context.Context    { return ctx }
func EnsureOwner(ctx context.Context) context.Context { return ctx }
func HasOwner(ctx context.Context) bool               { return false }
func WithOwner(ctx context.Context) context.Context   { return ctx }

func Do(
	ctx context.Context, lock Locker, wait, lease time.Duration, fn func(context.Context) error,
) (err error) {
	return nil
}

func With[T any](
	ctx context.Context, lock Locker, wait, lease time.Duration,
	fn func(context.Context) (T, error),
) (result T, err error) {
	return result, nil
}
