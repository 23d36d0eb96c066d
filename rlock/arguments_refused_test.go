package rlock_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// What can never work is refused before anything is sent.
func TestImpossibleArgumentsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock, nameless := client.NewLock("lock"), client.NewLock("")
	try := func(l *rlock.Lock, wait, lease time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := l.TryLock(ctx, wait, lease)
			return err
		}
	}
	monitor := s.Monitor(t)
	for name, call := range map[string]func(context.Context) error{
		"lease below a millisecond": try(lock, 0, time.Millisecond-1),
		"lease that is all drift":   try(lock, 0, 2*time.Millisecond),
		"lease of 0":                try(lock, 0, 0),
		"lease of Forever":          try(lock, 0, rlock.Forever),
		"negative wait":             try(lock, -1, time.Second),
		"swapped constants":         try(lock, rlock.Watchdog, rlock.NoWait),
		"empty name":                try(nameless, time.Second, time.Second),
		"lease of Lock": func(ctx context.Context) error {
			_, err := lock.Lock(ctx, time.Millisecond)
			return err
		},
		"Lock of no name": func(ctx context.Context) error {
			_, err := nameless.Lock(ctx, rlock.Watchdog)
			return err
		},
		"ForceUnlock of no name": func(ctx context.Context) error {
			_, err := nameless.ForceUnlock(ctx)
			return err
		},
		"Info of no name": func(ctx context.Context) error {
			_, err := nameless.Info(ctx)
			return err
		},
		"HoldCount of no name": func(ctx context.Context) error {
			_, err := nameless.HoldCount(ctx)
			return err
		},
	} {
		err := call(t.Context())
		require.ErrorIs(t, err, rlock.ErrInvalid, name)
		require.ErrorContains(t, err, "holdfast: lock ", name)
	}
	require.Empty(t, monitor.Commands(t))
}

func TestRefusedLeaseIsShownAsGiven(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	_, err := newClient(t, s, rlock.Options{}).NewLock("lock").
		Lock(t.Context(), 700*time.Microsecond)
	require.EqualError(
		t,
		err,
		`holdfast: lock "lock": invalid argument: a lease of 700µs is over before it can be used: `+
			`want at least 3ms, or rlock.Watchdog`,
	)
}

func TestShortestLeaseIsAccepted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	_, err := lock.TryLock(t.Context(), 0, 3*time.Millisecond)
	require.NotErrorIs(t, err, rlock.ErrInvalid)
}

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWork)
	monitor := s.Monitor(t)
	_, lockErr := lock.Lock(ctx, rlock.Watchdog)
	_, tryErr := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	_, infoErr := lock.Info(ctx)
	_, forceErr := lock.ForceUnlock(ctx)
	for _, err := range []error{lockErr, tryErr, infoErr, forceErr} {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errWork, "the error names the cause of the cancellation")
	}
	require.ErrorIs(t, lockErr, rlock.ErrNotAcquired)
	require.ErrorContains(t, lockErr, "the wait ended before Redis said who holds it")
	require.Empty(t, monitor.Commands(t))
}

func TestContextOfAReleasedHoldIsRefusedAsSuch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(c, k.name), longLease)
		ctx := hold.Context()
		unlock(t, hold)
		monitor := s.Monitor(t)
		_, err := k.lock(c, k.name).Lock(ctx, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, rlock.ErrReleased)
		require.ErrorContains(t, err, "this context belongs to a hold that was released")
		require.NotContains(t, err.Error(), "before Redis said")
		require.Empty(t, monitor.Commands(t))
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := s.Client(t)
	for name, options := range map[string]rlock.Options{
		"WatchdogLease":          {WatchdogLease: 5 * time.Millisecond},
		"negative lease":         {WatchdogLease: -time.Second},
		"CommandTimeout":         {CommandTimeout: -1},
		"shorter than any reply": {CommandTimeout: time.Millisecond - 1},
		"PubSub":                 {PubSub: rlock.PubSubSharded + 1},
		"PubSub below":           {PubSub: rlock.PubSubAuto - 1},
	} {
		_, err := rlock.New(redis, options)
		require.ErrorIs(t, err, rlock.ErrInvalid, name)
	}
	_, err := rlock.New(nil, rlock.Options{})
	require.ErrorIs(t, err, rlock.ErrInvalid)
}

func TestWatchdogLeaseDefaultsToThatOfRedisson(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	take(t, newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	require.InDelta(t, 30_000, s.DoInt(t, "PTTL", "lock"), 5_000)
}

// The context belongs to another hold. That says nothing of this lock, nor of this client.
func TestContextOfAnotherHoldThatEndedIsRefusedAsSuch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, closed := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	lost := take(t, c.NewLock("lost"), longLease).Context()
	_, err := c.NewLock("lost").ForceUnlock(t.Context())
	require.NoError(t, err)
	ofClosed := take(t, closed.NewLock("closed"), longLease).Context()
	closeClient(t, closed)
	for text, ctx := range map[string]context.Context{
		"that was lost":           lost,
		"whose client was closed": ofClosed,
	} {
		for _, name := range []string{"order", "lost"} {
			_, err := c.NewLock(name).TryLock(ctx, rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "this context belongs to a hold "+text)
			require.ErrorContains(t, err, `holdfast: lock "`+name+`": `)
			require.Equal(t, 1, strings.Count(err.Error(), "holdfast: "), err.Error())
		}
	}
}

func TestNilContextLeavesTheClientAbleToClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	var none context.Context
	require.Panics(t, func() { _, _ = c.NewLock("other").Lock(none, longLease) })
	require.Panics(t, func() { _ = hold.Extend(none, longLease) })
	unlock(t, hold)
	closeClient(t, c)
}

// The mistake: the wait and the lease are swapped, which compiles.
func TestSwappedWaitAndLeaseAreRefusedWithTheirNames(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	for text, times := range map[string][2]time.Duration{
		"want TryLock(ctx, rlock.NoWait, rlock.Watchdog)":      {rlock.Watchdog, rlock.NoWait},
		"rlock.Watchdog is a lease, the argument after it":     {rlock.Watchdog, time.Second},
		"rlock.NoWait is a wait, the argument before it":       {time.Second, rlock.NoWait},
		"the lease is rlock.Forever, which is a wait":          {time.Second, rlock.Forever},
		"rlock.NoWait, which a negative one is in Redis":       {-time.Second, time.Second},
		"rlock.Watchdog, which renews the lock until it is re": {0, 0},
	} {
		for _, lock := range []rlock.Locker{c.NewLock("a"), multilock.NewOn(c, "a", "b"),
			redlock.NewOn("a", redlock.Options{}, c)} {
			_, err := lock.TryLock(t.Context(), times[0], times[1])
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, text)
		}
	}
}

func TestAnyNegativeLeaseIsTheWatchdogs(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		for _, lease := range []time.Duration{rlock.Watchdog, -time.Second, math.MinInt64} {
			hold := take(t, b.lock, lease)
			time.Sleep(time.Hour)
			require.True(t, hold.Valid())
			require.NoError(t, hold.Extend(t.Context(), lease))
			unlock(t, hold)
		}
	})
}
