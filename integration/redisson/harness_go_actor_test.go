//go:build interop

package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// goActor is an owner of this library.
type goActor struct {
	ctx     context.Context // carries the owner
	clients []*rlock.Client // several for a RedLock
	last    *rlock.Hold     // of the last acquisition
}

// newGoActor returns an owner with its own client, which hands locks over by default.
func newGoActor(t testing.TB, s *site) actor {
	t.Helper()
	return newGoActors(t, s, rlock.HandOverAnywhere, 1)[0]
}

// newGoActors returns owners of one client with the given hand-over.
func newGoActors(t testing.TB, s *site, handOver rlock.HandOver, n int) []actor {
	t.Helper()
	var clients []*rlock.Client
	for _, connect := range s.connect {
		clients = append(clients, newClient(t, connect(t), handOver))
	}
	actors := make([]actor, n)
	for i := range actors {
		actors[i] = &goActor{ctx: rlock.WithOwner(t.Context()), clients: clients}
	}
	return actors
}

// newClient returns a client with the watchdog of these tests, closed in clean-up.
func newClient(t testing.TB, redis rueidis.Client, handOver rlock.HandOver) *rlock.Client {
	t.Helper()
	c, err := rlock.New(redis,
		rlock.Options{WatchdogLease: watchdogLease, HandOver: handOver,
			Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, c) })
	return c
}

// lockerOf returns this library's lock for a target.
func lockerOf(clients []*rlock.Client, l target) rlock.Locker {
	switch l.kind {
	case multi:
		parts := make([]rlock.Locker, len(l.names))
		for i, part := range l.parts() {
			parts[i] = lockOf(clients[0], part)
		}
		return multilock.New(parts...)
	case red:
		// The servers of a test have just been started, and a busy machine is slow.
		return redlock.NewOn(l.name(), redlock.Options{FsyncAlways: true, NodeTimeout: time.Second},
			clients...)
	default:
		return lockOf(clients[0], l)
	}
}

// lockOf returns the lock of package rlock for a target.
func lockOf(c *rlock.Client, l target) *rlock.Lock {
	switch l.kind {
	case reentrant:
		return c.NewLock(l.name())
	case fair:
		return c.NewFairLock(l.name())
	case fenced:
		return c.NewFencedLock(l.name())
	case nonReentrant:
		return c.NewNonReentrantLock(l.name())
	case nonReentrantFair:
		return c.NewNonReentrantFairLock(l.name())
	case read:
		return c.NewReadWriteLock(l.name()).Read()
	case write:
		return c.NewReadWriteLock(l.name()).Write()
	}
	panic("no such kind in Go: " + l.kind)
}

func (a *goActor) tryLock(l target, wait time.Duration, lease rlock.Lease) error {
	hold, err := lockerOf(a.clients, l).TryLock(a.ctx, wait, lease)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return a.took(hold, err)
}

func (a *goActor) lock(l target, lease rlock.Lease) error {
	return a.took(lockerOf(a.clients, l).Lock(a.ctx, lease))
}

// took keeps the hold of an acquisition, and returns its error.
func (a *goActor) took(hold *rlock.Hold, err error) error {
	if errors.Is(err, rlock.ErrReentry) {
		return fmt.Errorf("%w: %w", errReenters, err)
	}
	if err == nil {
		a.last = hold
	}
	return err
}

func (a *goActor) unlock(l target) error {
	err := lockerOf(a.clients, l).Unlock(a.ctx)
	if errors.Is(err, rlock.ErrNotHeld) || errors.Is(err, rlock.ErrLost) {
		return fmt.Errorf("%w: %w", errNotHolder, err)
	}
	return err
}

func (a *goActor) forceUnlock(l target) error {
	for _, part := range l.parts() {
		if _, err := lockOf(a.clients[0], part).ForceUnlock(a.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *goActor) count(l target) (n int, err error) {
	for _, part := range l.parts() {
		n, err = lockOf(a.clients[0], part).HoldCount(a.ctx)
		if err != nil || n == 0 {
			return 0, err
		}
	}
	return n, nil
}

func (a *goActor) locked(l target) (is bool, err error) {
	for _, part := range l.parts() {
		is, err = lockOf(a.clients[0], part).IsLocked(a.ctx)
		if err != nil || is {
			return is, err
		}
	}
	return false, nil
}

func (a *goActor) ttl(l target) (time.Duration, error) {
	return lockOf(a.clients[0], l.parts()[0]).TTL(a.ctx)
}

func (a *goActor) token() int64 { return a.last.Token() }
