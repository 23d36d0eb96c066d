package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestExtendNeverShortensALease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		for name, lease := range map[string]time.Duration{
			"explicit": 10 * time.Second, "watchdog": rlock.Watchdog,
		} {
			hold := take(t, k.lock(c, k.name), lease)
			sent := time.Now()
			require.NoError(t, hold.Extend(t.Context(), time.Minute), name)
			deadline := hold.Deadline()
			require.False(t, deadline.Before(watchdog.Deadline(sent, time.Minute)), name)
			require.False(t, deadline.After(watchdog.Deadline(time.Now(), time.Minute)), name)
			require.Greater(t, k.lasts(t, s, k.name, hold.Owner()), int64(50_000), name)

			require.NoError(t, hold.Extend(t.Context(), time.Second), name)
			require.Equal(t, deadline, hold.Deadline(), name)
			require.Greater(t, k.lasts(t, s, k.name, hold.Owner()), int64(50_000), name)
			require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name),
				"it is no level")
			require.True(t, hold.Valid())
			unlock(t, hold)
			requireFree(t, s, k.name)
		}
	})
}

func TestExtendWithTheLeaseOfTheWatchdogLastsForThatLeaseOnce(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	onEveryKind(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(c, k.name), 10*time.Second)
		sent := time.Now()
		require.NoError(t, hold.Extend(t.Context(), rlock.Watchdog))
		deadline := hold.Deadline()
		require.False(t, deadline.Before(watchdog.Deadline(sent, lease)))
		require.False(t, deadline.After(watchdog.Deadline(time.Now(), lease)))
		require.Greater(t, k.lasts(t, s, k.name, hold.Owner()), int64(50_000))
		unlock(t, hold)
		requireFree(t, s, k.name)
	})
}

func TestExtendOfALockThatIsLostReturnsErrLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		for name, lose := range map[string]func(){
			"gone": func() { s.Do(t, "FLUSHALL") },
			"force-unlocked": func() {
				_, err := k.lock(other, k.name).ForceUnlock(t.Context())
				require.NoError(t, err)
			},
			"another has it": func() {
				s.Do(t, "FLUSHALL")
				plant(t, s, k.name, k.contenderHash("another:1", 1))
			},
		} {
			hold := take(t, k.lock(c, k.name), longLease)
			inner := takeWith(hold.Context(), t, k.lock(c, k.name), longLease)
			lose()
			before := s.DoMap(t, "HGETALL", k.name)
			err := hold.Extend(t.Context(), longLease)
			require.ErrorIs(t, err, rlock.ErrLost, name)
			require.ErrorIs(t, err, watchdog.ErrGone, name)
			var lost *rlock.LostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, k.name, lost.Lock)
			require.ErrorIs(t, inner.Err(), rlock.ErrLost, name)
			require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrLost, name)
			require.Equal(t, before, s.DoMap(t, "HGETALL", k.name), "it takes nothing")
			s.Do(t, "FLUSHALL")
		}
	})
}

func TestExtendOfAHoldThatHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c := newClient(t, s, rlock.Options{})
		outer := take(t, k.lock(c, k.name), longLease)
		inner := takeWith(outer.Context(), t, k.lock(c, k.name), longLease)
		unlock(t, inner)
		monitor := s.Monitor(t)
		err := inner.Extend(t.Context(), time.Hour)
		require.ErrorIs(t, err, rlock.ErrNotHeld)
		require.ErrorContains(t, err, k.name)
		require.NotErrorIs(t, err, rlock.ErrReleased)
		require.Less(t, time.Until(outer.Deadline()), longLease,
			"the outer level lasts as long as it did")

		tooShort := 2*time.Millisecond + 999*time.Microsecond
		for _, lease := range []time.Duration{time.Millisecond, tooShort} {
			err := outer.Extend(t.Context(), lease)
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, lease.String())
			require.ErrorContains(t, err, "want at least 3ms")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the caller went home")
		cancel(why)
		err = outer.Extend(ctx, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, rlock.ErrLost)
		require.True(t, outer.Valid())
		require.Empty(t, monitor.Commands(t))

		unlock(t, outer)
		outer = take(t, k.lock(c, k.name), longLease)
		closeClient(t, c)
		require.ErrorIs(t, outer.Extend(t.Context(), time.Hour), rlock.ErrClosed)
		unlock(t, outer)
		requireFree(t, s, k.name)
	})
}

// Nothing is sent, and the hold is unchanged.
func TestExtendWithAContextThatHasEndedSaysOnlyThat(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold, other := take(t, c.NewLock("order"), longLease), take(t, c.NewLock("another"), longLease)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lost := other.Context()
	_, err := c.NewLock("another").ForceUnlock(t.Context())
	require.NoError(t, err)
	<-lost.Done()
	monitor := s.Monitor(t)
	for _, ended := range []context.Context{ctx, lost} {
		err := hold.Extend(ended, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `lock "order"`)
		require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrLost, "that is the state of another hold")
	}
	require.Empty(t, monitor.Commands(t))
	require.True(t, hold.Valid())
	unlock(t, hold)
}

func TestExtendIsRetriedWhenItsReplyIsLost(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), 10*time.Second)
		cut := p.CutReply(script(t, k.renew), 2)
		require.NoError(t, hold.Extend(t.Context(), time.Minute))
		require.Equal(t, 2, cut.Done())
		require.Greater(t, time.Until(hold.Deadline()), 50*time.Second)
		require.Equal(t, k.hash(hold.Owner(), 1), counts(t, s))
		unlock(t, hold)
		requireFree(t, s, "order")
	})
}

func TestExtendWhileTheLockIsReleasedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		for range 10 {
			outer := take(t, k.lock(c, k.name), longLease)
			inner := takeWith(outer.Context(), t, k.lock(c, k.name), longLease)
			errs := make(chan error, 8)
			var calls sync.WaitGroup
			for i := range cap(errs) {
				calls.Go(
					func() { errs <- []*rlock.Hold{outer, inner}[i%2].Extend(t.Context(), longLease) },
				)
			}
			unlock(t, outer)
			unlock(t, inner)
			calls.Wait()
			close(errs)
			for err := range errs {
				if err != nil {
					require.ErrorIs(t, err, rlock.ErrNotHeld)
					require.NotErrorIs(t, err, rlock.ErrLost)
				}
			}
			requireFree(t, s, k.name)
		}
	})
}
