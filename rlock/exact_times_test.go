package rlock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestAnHourUnderTheWatchdogIsRenewedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Watchdog)
		ctx := hold.Context()
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())
		require.True(t, hold.Valid())
		previous := time.Duration(0)
		renewals := b.called(k.renew)
		for _, at := range renewals {
			// A renewal may open another connection. The next one comes at once then, because rueidis
			// also opens a connection if it has noticed that an earlier one was lost.
			if at < time.Minute {
				previous = at
				continue
			}
			require.GreaterOrEqual(t, at-previous, 9*time.Second)
			require.LessOrEqual(t, at-previous, 10*time.Second)
			previous = at
		}
		require.InDelta(t, 380, len(renewals), 20)
		unlock(t, hold)
		time.Sleep(time.Hour)
		require.Len(t, b.called(k.renew), len(renewals), "a released lock is not renewed")
	})
}

func TestHoldEndsExactlyAtItsDeadlineWithoutRepliesToRenewals(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Watchdog)
		time.Sleep(time.Minute)
		b.server.Pause()
		renewals := b.called(k.renew)
		deadline := watchdog.Deadline(b.start.Add(renewals[len(renewals)-1]), 30*time.Second)
		require.True(t, hold.Deadline().Equal(deadline))

		<-hold.Context().Done()
		require.True(t, time.Now().Equal(deadline), "%v after the deadline", time.Since(deadline))
		require.False(t, hold.Valid())
		require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrLost)
		require.ErrorIs(t, hold.Err(), watchdog.ErrExpired)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		require.True(t, time.Now().Equal(deadline), "a lost lock is not waited for")
	})
}

// The server may begin to count as soon as the command was sent, however late the reply comes.
func TestDeadlineCountsFromBeforeTheCommandWasSent(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		slow := func(script string) {
			b.reply(script, func(args []string) any {
				time.Sleep(time.Second)
				return granted[script](args)
			})
		}
		slow(k.acquire)
		slow(k.reenter)
		hold := take(t, b.lock, 30*time.Second)
		require.Equal(t, time.Second, time.Since(b.start))
		require.True(t, hold.Deadline().Equal(watchdog.Deadline(b.start, 30*time.Second)))
		takeWith(hold.Context(), t, b.lock, time.Minute)
		require.True(t,
			hold.Deadline().Equal(watchdog.Deadline(b.start.Add(time.Second), time.Minute)))
	})
}

func TestHoldSurvivesAServerThatIsSilentForLessThanTheLease(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Watchdog)
		for range 5 {
			b.server.Pause()
			time.Sleep(18 * time.Second) // less than the lease, with the 10 s before
			b.server.Resume()
			time.Sleep(10 * time.Second)
			require.NoError(t, hold.Err())
		}
		unlock(t, hold)
	})
}

func TestHoldSurvivesRefusedRenewals(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Watchdog)
		b.reply(k.renew, func([]string) any { return errors.New("LOADING the dataset") })
		// the next try comes within a second, the deadline 300 ms before the lease ends
		time.Sleep(28 * time.Second)
		b.reply(k.renew, granted[k.renew])
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
	})
}

func TestRenewalThatFindsTheLockGoneEndsTheHoldAtOnce(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Watchdog)
		b.reply(k.renew, func([]string) any { return []any{0} })
		<-hold.Done()
		require.ErrorIs(t, hold.Err(), watchdog.ErrGone)
		require.Equal(t, []time.Duration{time.Since(b.start)}, b.called(k.renew))
	})
}

func TestWaitIsExactWhileTheServerHangs(t *testing.T) {
	inBubbleOnEveryKind(
		t,
		rlock.Options{CommandTimeout: 3 * time.Second},
		func(t *testing.T, b *bubble, k kind) {
			hold := take(t, b.lock, time.Hour)
			for _, call := range []struct {
				name string
				do   func() error
				took time.Duration
			}{
				{"TryLock", func() error {
					_, err := b.lock.TryLock(t.Context(), 1234567*time.Microsecond, rlock.Watchdog)
					return err
				}, 1234567 * time.Microsecond},
				{"the shortest TryLock", func() error {
					_, err := b.lock.TryLock(t.Context(), time.Nanosecond, rlock.Watchdog)
					return err
				}, 10 * time.Millisecond},
				{"TryLock without wait", func() error {
					_, err := b.lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
					return err
				}, 3 * time.Second},
				{"re-entry", func() error {
					_, err := b.lock.TryLock(hold.Context(), 70*time.Millisecond, rlock.Watchdog)
					return err
				}, 70 * time.Millisecond},
				{"Lock", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
					defer cancel()
					_, err := b.lock.Lock(ctx, rlock.Watchdog)
					return err
				}, 4 * time.Second},
				{"Info", func() error {
					_, err := b.lock.Info(t.Context())
					return err
				}, 3 * time.Second},
				{"Unlock", func() error { return hold.Unlock(t.Context()) }, 3 * time.Second},
			} {
				b.server.Pause()
				start := time.Now()
				require.ErrorIs(t, call.do(), rlock.ErrOutcomeUnknown, call.name)
				require.Equal(t, call.took, time.Since(start), call.name)
				b.server.Resume()
				synctest.Wait()
			}
		},
	)
}

// rueidis lets a caller wait for a dial that another one has begun, for 5 s.
func TestWaitIsExactWhileACleanupDials(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		option := b.server.ClientOption()
		redistest.OneConnection(&option) // the two need the same one
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		defer redis.Close()
		client := newClientOn(t, redis, rlock.Options{})
		defer closeClient(t, client)
		defer b.server.Resume()
		lock := k.lock(client, "lock")
		b.server.Pause()
		for range 2 { // from now on, callers send by themselves
			go func() { _, _ = lock.Info(t.Context()) }()
			synctest.Wait()
		}
		b.server.Resume()
		synctest.Wait()

		b.server.Pause()
		b.server.Disconnect()
		synctest.Wait()
		go rlock.CleanUp(lock, client.ID()+":1")
		synctest.Wait()
		start := time.Now()
		_, err = lock.TryLock(t.Context(), 1234567*time.Microsecond, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.Equal(t, 1234567*time.Microsecond, time.Since(start))
	})
}

// rueidis gives up a connection without a reply after 10 s. The command may have been executed.
func TestBrokenConnectionLeavesTheOutcomeUnknown(t *testing.T) {
	inBubbleOnEveryKind(
		t,
		rlock.Options{CommandTimeout: time.Minute},
		func(t *testing.T, b *bubble, k kind) {
			b.server.Pause()
			_, err := b.lock.ForceUnlock(t.Context())
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			var failure *rlock.ServerError
			require.ErrorAs(t, err, &failure)
			require.Less(t, time.Since(b.start), time.Minute)
			b.server.Resume()

			b.server.Pause()
			_, err = b.lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		},
	)
}

func TestWaitIsExactWhileTheLockIsHeld(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, heldFor(30_000))
		_, err := b.lock.TryLock(t.Context(), 1234567*time.Microsecond, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, 1234567*time.Microsecond, time.Since(b.start))
	})
}

// A server that keeps replying with 0 ms must not make the waiter spin.
func TestWaiterNeverParksForNothing(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func(args []string) any {
			if len(b.called(k.acquire)) > 10_000 { // time stands still for a waiter that spins
				return granted[k.acquire](args)
			}
			return heldFor(0)(args)
		})
		_, err := b.lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.LessOrEqual(t, len(b.called(k.acquire)), 15,
			"a lease that is over and does not end is looked at less and less often")
	})
}

func TestWaiterAsksWhenTheLeaseShouldBeOver(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, heldFor(1234))
		waiter := lockInBackground(t.Context(), b.lock, rlock.Watchdog)
		time.Sleep(time.Millisecond)
		b.reply(k.acquire, granted[k.acquire])
		unlock(t, acquired(t, waiter))
		require.Equal(t, []time.Duration{0, 0, 1234 * time.Millisecond}, b.called(k.acquire))
	})
}

// The limit on sleeping bounds the harm of a lost message. A lock without expiry has nothing else.
func TestWaiterAsksEveryFiveSecondsAtTheLatest(t *testing.T) {
	for name, ttl := range map[string]int{"no expiry": -1, "long lease": 3_600_000} {
		t.Run(name, func(t *testing.T) {
			inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
				b.reply(k.acquire, heldFor(ttl))
				_, err := b.lock.TryLock(t.Context(), 16*time.Second, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				// At once, when the subscription is confirmed, and then every 5 s.
				require.Equal(t,
					[]time.Duration{0, 0, 5 * time.Second, 10 * time.Second, 15 * time.Second},
					b.called(k.acquire))
			})
		})
	}
}

func TestMessageWakesTheWaiterInNoTime(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		channels := make(chan string, 10)
		b.reply(k.acquire, func(args []string) any {
			channel := k.channel + ":{lock}"
			if k.lonely {
				channel += ":" + args[10] // the owner
			}
			channels <- channel
			return heldFor(30_000)(args)
		})
		waiter := lockInBackground(t.Context(), b.lock, rlock.Watchdog)
		time.Sleep(time.Second)
		b.reply(k.acquire, granted[k.acquire])
		require.Equal(t, 1, b.server.Publish(<-channels, "0"))
		unlock(t, acquired(t, waiter))
		require.Equal(t, time.Second, time.Since(b.start))
	})
}

func TestWaiterBacksOffWhileTheServerIsLoading(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func([]string) any { return errors.New("LOADING the dataset") })
		waiter := lockInBackground(t.Context(), b.lock, rlock.Watchdog)
		time.Sleep(time.Minute)
		synctest.Wait()
		tries := b.called(k.acquire)
		require.Less(t, len(tries), 2*60+10, "not much more than once a half second")
		for i := range tries[1:] {
			require.LessOrEqual(t, tries[i+1]-tries[i], time.Second)
		}
		b.reply(k.acquire, granted[k.acquire])
		unlock(t, acquired(t, waiter))
		require.LessOrEqual(t, time.Since(b.start), time.Minute+time.Second)
	})
}

// A reply to an acquire that comes after the end of the lease is worthless, and the acquire is
// undone.
func TestAcquireThatTookLongerThanItsLeaseFails(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func([]string) any {
			time.Sleep(200 * time.Millisecond)
			return granted[k.acquire](nil)
		})
		_, err := b.lock.TryLock(t.Context(), rlock.NoWait, 100*time.Millisecond)
		require.Error(t, err)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		require.Zero(t, rlock.Sessions(b.client))
	})
}

func TestReleaseWithoutReplyIsRetriedInTheBackground(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, time.Minute)
		b.reply(k.release, func([]string) any { return errors.New("LOADING the dataset") })
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		require.Equal(t, 3*time.Second, time.Since(b.start))
		require.ErrorIs(t, hold.Err(), rlock.ErrReleased, "the hold has ended for this process")
		time.Sleep(10 * time.Second)
		tries := len(b.called(k.release))
		b.reply(k.release, granted[k.release])
		time.Sleep(2 * time.Second)
		require.Len(t, b.called(k.release), tries+1, "no retry after it succeeded")
	})
}

func TestReleaseIsRetriedNoLongerThanTheLease(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, 10*time.Second)
		b.reply(k.release, func([]string) any { return errors.New("LOADING the dataset") })
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		time.Sleep(time.Minute)
		tries := b.called(k.release)
		last := 10 * time.Second
		if k.mode != "" {
			last += 3 * time.Second // the other mode may keep the key longer
		}
		require.LessOrEqual(t, tries[len(tries)-1], last)
		require.Greater(t, tries[len(tries)-1], 8*time.Second)
	})
}

// A handler that writes to a full pipe blocks as long as nothing reads from it.
func TestLoggerThatBlocksKeepsNoHoldBeyondItsDeadline(t *testing.T) {
	handler := &stuckHandler{Handler: slog.DiscardHandler}
	inBubbleOnEveryKind(
		t,
		rlock.Options{Logger: slog.New(handler)},
		func(t *testing.T, b *bubble, k kind) {
			// made in the bubble, so that waiting for it counts as waiting
			handler.freed = make(chan struct{})
			defer close(handler.freed)
			var holds []*rlock.Hold
			for _, name := range []string{"a", "b", "c"} {
				holds = append(holds, take(t, k.lock(b.client, name), time.Minute))
			}
			for _, hold := range holds {
				time.Sleep(time.Until(hold.Deadline()))
				synctest.Wait()
				require.ErrorIs(t, hold.Err(), rlock.ErrLost, "the end of a hold waits for the log")
			}
		},
	)
}

// stuckHandler is a log handler that blocks until it is freed.
type stuckHandler struct {
	slog.Handler
	freed chan struct{}
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *stuckHandler) Handle(context.Context, slog.Record) error {
	<-h.freed
	return nil
}

// Such a lease does not fit into a time.Duration.
func TestWaiterForALeaseOfCenturiesDoesNotPoll(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, heldFor(9_300_000_000_000))
		_, err := b.lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Greater(t, held.TTL, 200*365*24*time.Hour)
		require.LessOrEqual(t, len(b.called(k.acquire)), 14)
	})
}

// Nothing says that the lock is held, so the error must not claim that another owner holds it.
func TestWaiterBehindAHeadWithoutReplySaysThatRedisDoesNotReply(t *testing.T) {
	for failure, begin := range map[string]func(*bubble, kind){
		"no reply from Redis": func(b *bubble, _ kind) { b.server.Pause() },
		"LOADING": func(b *bubble, k kind) {
			b.reply(k.acquire, func([]string) any { return errors.New("LOADING the dataset") })
		},
	} {
		t.Run(failure, func(t *testing.T) {
			inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
				begin(b, k)
				var before []<-chan outcome
				for range 2 { // the first asks before it queues, the second is the head
					before = append(before, inBackground(func() (*rlock.Hold, error) {
						return b.lock.TryLock(t.Context(), 5*time.Second, rlock.Watchdog)
					}))
					synctest.Wait()
				}
				time.Sleep(time.Second)
				_, err := b.lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
				require.ErrorContains(t, err, failure)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				if !k.lonely {
					require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown, "it has sent nothing")
				}
				for _, attempt := range before {
					require.Error(t, (<-attempt).Err)
				}
			})
		})
	}
}

func TestUnconfirmedPartialUnlockOfALockThatIsGoneSaysLost(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		outer := take(t, b.lock, time.Minute)
		inner := takeWith(outer.Context(), t, b.lock, time.Minute)
		b.reply(k.release, func([]string) any {
			if len(b.called(k.release)) == 1 {
				b.server.Disconnect()
			}
			return []any{-1, ""}
		})
		require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrLost)
		require.Len(t, b.called(k.release), 2)
		require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	})
}
