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

// An extension is for the lock, not for its level: it lasts until the last level is released, in
// whatever order.
func TestExtendOfOneLevelLastsForAll(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		for extended := range 3 {
			for released := range 3 {
				var levels []*rlock.Hold
				ctx := rlock.WithOwner(t.Context())
				for range 3 {
					levels = append(levels, takeWith(ctx, t, k.lock(c, k.name), 5*time.Second))
				}
				owner := levels[0].Owner()
				require.NoError(t, levels[extended].Extend(t.Context(), time.Minute))
				require.Equal(t, k.hash(owner, 3), s.DoMap(t, "HGETALL", k.name))
				for i := range levels {
					level := levels[(released+i)%3]
					require.Greater(t, time.Until(level.Deadline()), 50*time.Second)
					require.Greater(t, k.lasts(t, s, k.name, owner), int64(50_000),
						"%d extended, %d released", extended, i)
					unlock(t, level)
				}
				requireFree(t, s, k.name)
			}
		}
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

func TestExtendOfALockWhoseLeaseIsOverReturnsErrLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), time.Second)
		receive(t, hold.Done(), "the lease does not end")
		require.ErrorIs(t, hold.Extend(t.Context(), longLease), watchdog.ErrExpired)
		waitUntilFree(t, s, k.name)
	})
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

func TestExtendThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(c, k.name), time.Minute)
		deadline := hold.Deadline()
		s.Do(t, "ACL", "SETUSER", "default", "-@scripting")
		start := time.Now()
		err := hold.Extend(t.Context(), longLease)
		require.Less(t, time.Since(start), promptly)
		var refusal *rlock.ServerError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "NOPERM", refusal.Code)
		require.ErrorContains(t, err, k.name)
		require.True(t, hold.Valid())
		require.Equal(t, deadline, hold.Deadline())
		s.Do(t, "ACL", "SETUSER", "default", "+@all")
		unlock(t, hold)
		requireFree(t, s, k.name)
	})
}

func TestExtendOnAHungServerReturnsInTime(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), time.Minute)
		deadline := hold.Deadline()
		patient := newClient(t, s, rlock.Options{CommandTimeout: longWait})
		another := take(t, k.lock(patient, "another"), time.Minute)
		s.Pause(t)
		within(t, shortTimeout+promptly, func() {
			requireNoReply(t, hold.Extend(t.Context(), longLease))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		within(t, promptly, func() {
			require.ErrorIs(t, another.Extend(ctx, longLease), context.DeadlineExceeded)
		})
		require.True(t, another.Valid())
		require.True(t, hold.Valid())
		require.Equal(t, deadline, hold.Deadline(), "the extension is unconfirmed")
		s.Resume(t)
		eventually(t, func() bool { return hold.Extend(t.Context(), longLease) == nil }, "extended")
		require.Greater(t, time.Until(hold.Deadline()), longLease/2)
		unlock(t, hold)
		requireFree(t, s, "order")
		unlock(t, another)
	})
}

// The server executes it when it resumes. By then the hold is over, and nothing else would release
// the extended lock.
func TestExtendThatIsExecutedAfterTheHoldWasLostIsUndone(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), 2*time.Second)
		p.HoldReplies()
		requireNoReply(t, hold.Extend(t.Context(), longLease))
		require.Greater(t, k.lasts(t, s, "order", hold.Owner()), int64(60_000))
		receive(t, hold.Done(), "the lease does not end")
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		p.Pass()
		waitUntilFree(t, s, "order")
	})
}

// Redis did what it was asked, but its reply comes after the hold was given up: the lock was lost
// all the same.
func TestExtendWhoseReplyComesAfterTheLossReturnsErrLost(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: longWait})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), time.Second)
		p.HoldReplies()
		extended := make(chan error, 1)
		go func() { extended <- hold.Extend(t.Context(), longLease) }()
		receive(t, hold.Done(), "the lease does not end")
		p.Pass()
		require.ErrorIs(t, receive(t, extended, "Extend has not returned"), rlock.ErrLost)
		waitUntilFree(t, s, "order")
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
