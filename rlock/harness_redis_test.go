//go:build redis

package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// requireRefusedAfter requires that a waiter does not get the lock. A machine that is too busy to
// reply in that time gets another chance.
func requireRefusedAfter(t testing.TB, wait time.Duration, l *rlock.Lock) {
	t.Helper()
	var err error
	eventually(t, func() bool {
		_, err = l.TryLock(t.Context(), wait, time.Minute)
		return !errors.Is(err, rlock.ErrOutcomeUnknown)
	}, "no reply")
	require.ErrorIs(t, err, rlock.ErrNotAcquired, l.Name())
}

// requireKept requires that holds stay valid for a while.
func requireKept(t testing.TB, holds []*rlock.Hold, length time.Duration, otherwise string) {
	t.Helper()
	over := time.After(length)
	look := time.NewTicker(length / 100)
	defer look.Stop()
	for {
		for _, hold := range holds {
			require.True(t, hold.Valid(), "%s: %s: %v; its deadline is in %v", otherwise,
				hold.Name(), hold.Err(), time.Until(hold.Deadline()))
		}
		select {
		case <-over:
			return
		case <-look.C:
		}
	}
}

// endedAt returns when the hold's context ended.
func endedAt(hold *rlock.Hold) <-chan time.Time {
	ctx, at := hold.Context(), make(chan time.Time, 1)
	go func() {
		<-ctx.Done()
		at <- time.Now()
	}()
	return at
}

// waitForRenewal waits until each of the holds has been renewed, and returns their deadlines.
func waitForRenewal(t *testing.T, holds []*rlock.Hold) (deadlines []time.Time) {
	t.Helper()
	for _, hold := range holds {
		deadlines = append(deadlines, hold.Deadline())
	}
	for i, hold := range holds {
		before := deadlines[i]
		eventually(t, func() bool { return hold.Deadline().After(before) }, "never renewed")
		deadlines[i] = hold.Deadline()
	}
	return deadlines
}

// waitForQuiet waits until no script was sent for a while: all that subscribed have asked again.
func waitForQuiet(t testing.TB, s *redistest.Server) {
	t.Helper()
	monitor := s.Monitor(t)
	for quiet := 0; quiet < 3; quiet++ {
		<-time.After(20 * time.Millisecond)
		if len(monitor.Commands(t)) > 0 {
			quiet = -1
		}
	}
}

// pause waits for d or until done is closed.
func pause(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
