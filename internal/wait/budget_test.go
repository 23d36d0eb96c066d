package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/wait"
)

func TestBudgetEndsWithItsContextItsTimeOrTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		awake := make(chan struct{}, 1)

		timed := wait.NewBudget(t.Context(), closing, time.Second)
		require.True(t, timed.Sleep(300*time.Millisecond, awake, nil))
		awake <- struct{}{}
		require.True(t, timed.Sleep(time.Hour, awake, nil))
		awake <- struct{}{}
		require.True(t, timed.Sleep(time.Hour, nil, awake))
		awake <- struct{}{}
		require.True(t, timed.Wait(awake))
		start := time.Now()
		require.False(t, timed.Sleep(time.Hour, awake, nil))
		require.Equal(t, 700*time.Millisecond, time.Since(start))
		require.True(t, timed.Over())
		require.NoError(t, timed.Err(), "the end of its own time is no error")
		require.False(t, timed.Wait(awake), "and it stays over")
		require.False(t, timed.Sleep(time.Hour, awake, nil))
		require.Equal(t, 700*time.Millisecond, time.Since(start))

		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := wait.NewBudget(ctx, closing, wait.Unlimited)
		require.False(t, cancelled.Over())
		cancel(reason)
		require.False(t, cancelled.Sleep(time.Hour, awake, nil))
		require.False(t, cancelled.Wait(awake))
		require.True(t, cancelled.Over())
		require.ErrorIs(t, cancelled.Err(), context.Canceled)
		require.ErrorIs(t, cancelled.Err(), reason)

		endless := wait.NewBudget(context.Background(), closing, wait.Unlimited)
		require.False(t, endless.Closing())
		close(closing)
		require.False(t, endless.Sleep(time.Hour, awake, nil))
		require.False(t, endless.Wait(awake))
		require.True(t, endless.Closing())
		require.ErrorIs(t, endless.Err(), wait.ErrClosed)
	})
}

func TestBudgetEndsWithItsTimeOrTheDeadlineOfItsContextWhicheverIsEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		until := func(ctx context.Context, limit time.Duration) time.Time {
			return wait.NewBudget(ctx, nil, limit).Until
		}
		require.Equal(t, now.Add(time.Minute), until(ctx, time.Hour))
		require.Equal(t, now.Add(time.Minute), until(ctx, wait.Unlimited))
		require.Equal(t, now.Add(time.Second), until(ctx, time.Second))
		require.Equal(t, now.Add(time.Second), until(t.Context(), time.Second))
		require.Zero(t, until(t.Context(), wait.Unlimited))
		late := wait.NewBudget(lateTimer{t.Context()}, nil, time.Minute)
		require.True(t, late.Over())
		require.ErrorIs(t, late.Err(), context.DeadlineExceeded)
	})
}

func TestBackoffDoublesFrom10MillisecondsTo1Second(t *testing.T) {
	var b wait.Backoff
	for _, milliseconds := range []int{10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
		longest := time.Duration(milliseconds) * time.Millisecond
		delay := b.Next()
		require.GreaterOrEqual(t, delay, longest/2)
		require.LessOrEqual(t, delay, longest)
	}
	require.Equal(t, 9, b.Failures)
	distinct := make(map[time.Duration]bool)
	for range 50 {
		distinct[b.Next()] = true
	}
	require.Greater(t, len(distinct), 1, "no jitter")
}

// lateTimer is a context whose deadline has passed, although its timer has not fired yet.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestTasksMayStartOthersUntilTheLastHasEnded(t *testing.T) {
	group := wait.NewGroup()
	release, started := make(chan struct{}), make(chan bool)
	require.True(t, group.Go(func() {
		<-release
		started <- group.Go(func() {})
	}))
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		group.Wait()
	}()
	require.Empty(t, waited)
	close(release)
	require.True(t, <-started, "a task may start what it needs to end properly")
	<-waited
	require.False(t, group.Go(func() { t.Error("started after the end") }))
	require.False(t, group.Join())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
