package redlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestOwnerReentersAndTheLockIsFreeAfterTheLastLevelInAnyOrder(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	other := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	lock := redlock.NewOn(name, atOnce, clients...)
	for _, order := range [][]int{{2, 1, 0}, {0, 1, 2}, {1, 0, 2}} {
		holds := []*rlock.Hold{take(t, lock, longLease)}
		for range 2 {
			holds = append(holds, takeWith(holds[0].Context(), t, lock, longLease))
		}
		for i, level := range order {
			require.Equal(t, holds[0].Owner(), holds[level].Owner())
			require.True(t, holds[level].Valid())
			_, err := other.TryLock(t.Context(), rlock.NoWait, time.Second)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.NotErrorIs(t, err, redlock.ErrNoQuorum)
			unlock(t, holds[level])
			require.ErrorIs(t, holds[level].Err(), rlock.ErrReleased)
			require.ErrorIs(t, holds[level].Unlock(t.Context()), rlock.ErrNotHeld)
			if i < 2 {
				require.True(t, holds[order[2]].Valid())
			}
		}
		waitUntilFree(t, servers...)
	}
}

func TestNestedLockExtendsTheLeaseOnEveryNode(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, time.Minute)
	waitUntilHeld(t, servers)
	eventually(t, func() bool { return lock.Parts(hold) == 5 }, "it is held on every node")
	nested := takeWith(hold.Context(), t, lock, longLease)
	require.Greater(t, time.Until(hold.Deadline()), longLease/2)
	require.Equal(t, hold.Deadline(), nested.Deadline())
	for _, s := range servers {
		eventually(t,
			func() bool { return s.DoInt(t, "PTTL", name) > (longLease / 2).Milliseconds() },
			"it lasts longer")
	}
	unlock(t, takeWith(hold.Context(), t, lock, time.Second))
	require.Greater(t, time.Until(hold.Deadline()), longLease/2, "a shorter lease shortens nothing")
	unlock(t, hold)
	unlock(t, nested)
	waitUntilFree(t, servers...)
}

func TestNestedLockOfWhatAQuorumHasLostEndsTheHold(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	for _, again := range []func(h *rlock.Hold) error{
		func(h *rlock.Hold) error {
			_, err := lock.TryLock(h.Context(), rlock.NoWait, longLease)
			return err
		},
		func(h *rlock.Hold) error {
			_, err := lock.Lock(h.Context(), rlock.Watchdog)
			return err
		},
		func(h *rlock.Hold) error { return h.Extend(t.Context(), longLease) },
	} {
		hold := take(t, lock, longLease)
		nested := takeWith(hold.Context(), t, lock, longLease)
		waitUntilHeld(t, servers)
		eventually(t, func() bool { return lock.Parts(hold) == 5 }, "it is held on every node")
		for _, s := range servers[:3] {
			s.Do(t, "DEL", name)
		}
		err := again(hold)
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorContains(t, err, "a, b, c: ")
		lostTo(t, hold)
		lostTo(t, nested)
		waitUntilFree(t, servers...)
		require.Never(t, func() bool { return count(servers) > 0 }, 50*time.Millisecond,
			5*time.Millisecond)
	}
}

func TestContextOfALevelDoesNotEndBeforeItsHold(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	outer := take(t, lock, longLease)
	inner := takeWith(outer.Context(), t, lock, longLease)
	ctx := inner.Context()
	ended := make(chan error, 1)
	hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) { ended <- ctx.Err() })
	waitUntilHeld(t, servers)
	for _, s := range servers[:3] {
		s.Do(t, "DEL", name)
	}
	require.ErrorIs(t, outer.Extend(t.Context(), longLease), rlock.ErrLost)
	require.NoError(t, receive(t, ended, "the inner level has not ended"))
	receive(t, ctx.Done(), "the context of the inner level has not ended")
	require.ErrorIs(t, context.Cause(ctx), rlock.ErrLost)
}

// Unlocking without a hold does not depend on who noticed a loss first: a loss is no misuse.
func TestUnlockByContextOfALockKnownToBeLostSaysSoOnceForEachLevel(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	ctx := rlock.WithOwner(t.Context())
	lose := func() (holds []*rlock.Hold) {
		for range 3 {
			holds = append(holds, takeWith(ctx, t, lock, longLease))
		}
		for _, c := range clients {
			_, err := c.NewLock(name).ForceUnlock(t.Context())
			require.NoError(t, err)
		}
		receive(t, holds[0].Done(), "the lock is not lost")
		waitUntilFree(t, servers...)
		return holds
	}
	holds := lose()
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
	require.ErrorIs(t, holds[2].Unlock(ctx), rlock.ErrNotHeld, "no level counts twice")
	require.ErrorIs(t, holds[1].Unlock(ctx), rlock.ErrLost)
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)

	lose()
	takeWith(ctx, t, lock, longLease)
	require.NoError(t, lock.Unlock(ctx), "releases what was acquired since")
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
	waitUntilFree(t, servers...)
}

// The first of them takes the lock, and the others enter with it, although none of them has its
// hold.
func TestGoroutinesOfOneOwnerAreInsideAtTheSameTime(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	ctx := rlock.WithOwner(t.Context())
	for _, acquire := range []func() (*rlock.Hold, error){
		func() (*rlock.Hold, error) { return lock.Lock(ctx, longLease) },
		func() (*rlock.Hold, error) { return lock.TryLock(ctx, rlock.NoWait, longLease) },
	} {
		var coming []<-chan outcome
		for range 8 {
			coming = append(coming, inBackground(acquire))
		}
		var holds []*rlock.Hold
		for _, o := range coming {
			holds = append(holds, acquired(t, o))
		}
		for _, hold := range holds {
			require.True(t, hold.Valid())
			require.Equal(t, holds[0].Owner(), hold.Owner())
		}
		for _, hold := range holds {
			unlock(t, hold)
		}
		waitUntilFree(t, servers...)
	}
}

func TestUnlockByContextReleasesTheInnermostLevelAlsoThroughAnotherLockOfTheSameNodes(
	t *testing.T,
) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	same := redlock.New(clients[4].NewLock(name), clients[2].NewLock(name), clients[0].NewLock(name),
		clients[1].NewLock(name), clients[3].NewLock(name)).
		WithOptions(atOnce)
	outer := take(t, lock, longLease)
	inner := takeWith(outer.Context(), t, same, longLease)
	require.Equal(t, outer.Owner(), inner.Owner())
	require.NoError(t, same.Unlock(outer.Context()))
	require.ErrorIs(t, inner.Err(), rlock.ErrReleased)
	require.True(t, outer.Valid())
	require.NoError(t, same.Unlock(outer.Context()))
	require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	require.ErrorIs(t, same.Unlock(outer.Context()), rlock.ErrNotHeld)
	require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
	require.ErrorIs(t, lock.Unlock(t.Context()), rlock.ErrNotHeld)
	require.ErrorContains(t, lock.Unlock(t.Context()), "no owner")
	require.ErrorIs(t, redlock.NewOn(name, atOnce, clients[:3]...).Unlock(inner.Context()),
		rlock.ErrNotHeld, "of other nodes")
	waitUntilFree(t, servers...)
}

// A lock is held as soon as a quorum of nodes has granted it. Others may grant it during an Extend.
func TestExtendAndNestedLockCountNodesThatGrantTheLockMeanwhile(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	for what, extend := range map[string]func(*testing.T, *bubble, *rlock.Hold) error{
		"Extend": func(t *testing.T, _ *bubble, hold *rlock.Hold) error {
			return hold.Extend(t.Context(), longLease)
		},
		"TryLock": func(_ *testing.T, b *bubble, hold *rlock.Hold) error {
			_, err := b.lock.TryLock(hold.Context(), time.Minute, longLease)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, atOnce, func(t *testing.T, b *bubble) {
				b.nodes[0].server.Close()
				b.nodes[2].delay("quorum_acquire.lua", late)
				hold := take(t, b.lock, time.Minute)
				b.nodes[1].server.Pause()
				require.NoError(t, extend(t, b, hold))
				require.Equal(t, late, time.Since(b.start))
				require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
			})
		})
	}
}

func TestExtendDoesNotAwaitANodeThatHasYetToGrantTheLock(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		hang := make(chan struct{})
		b.nodes[0].server.Close()
		b.nodes[2].reply("quorum_acquire.lua", func([]string) any { <-hang; return nil })
		hold := take(t, b.lock, time.Minute)
		synctest.Wait()
		b.nodes[1].reply("renew.lua", func([]string) any {
			b.nodes[1].reply("renew.lua", granting()["renew.lua"])
			return errors.New("BUSY for a moment")
		})
		err := hold.Extend(t.Context(), longLease)
		took := time.Since(b.start)
		close(hang)
		require.NoError(t, err, "the second round succeeds")
		require.Less(t, took, 100*time.Millisecond)
	})
}

func TestNodeThatGrantsTheLockDuringAnExtendLearnsTheLevels(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		var levels atomic.Value
		b.nodes[2].delay("quorum_acquire.lua", 100*time.Millisecond)
		b.nodes[2].reply("reenter.lua", func(args []string) any {
			levels.Store(args[2])
			return 1
		})
		hold := take(t, b.lock, time.Minute)
		inner := takeWith(hold.Context(), t, b.lock, 5*time.Minute)
		for _, n := range b.nodes[:2] {
			n.server.Pause()
			defer n.server.Resume()
		}
		require.NoError(t, hold.Extend(t.Context(), longLease))
		synctest.Wait()
		require.Equal(t, "2", levels.Load())
		b.nodes[0].server.Resume()
		b.nodes[1].server.Resume()
		unlock(t, inner)
		unlock(t, hold)
	})
}

func TestNodeThatGrantsTheLockDuringANestedLockGetsTheLongestLease(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		b.nodes[2].delay("quorum_acquire.lua", late)
		hold := take(t, b.lock, time.Minute)
		synctest.Wait()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		b.nodes[0].server.Pause()
		inner, err := b.lock.TryLock(hold.Context(), time.Minute, time.Second)
		require.NoError(t, err)
		require.Equal(t, late, time.Since(b.start), "it needs the third node")
		synctest.Wait()

		// Without the first node the hold lasts as long as on the third.
		b.nodes[0].reply("renew.lua", func([]string) any { return []any{0} })
		b.nodes[0].server.Resume()
		synctest.Wait()
		require.NoError(t, inner.Extend(t.Context(), time.Second))
		synctest.Wait()
		require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
		b.nodes[1].server.Resume()
		unlock(t, inner)
		unlock(t, hold)
	})
}

func TestExtendNeedsAQuorumAndWithoutOneTheHoldIsAsBefore(t *testing.T) {
	t.Parallel()
	clientOptions := rlock.Options{CommandTimeout: time.Second}
	inBubbleOf(t, clientOptions, atOnce, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, time.Minute)
		require.NoError(t, hold.Extend(t.Context(), 2*time.Minute))
		require.Greater(t, time.Until(hold.Deadline()), time.Minute)
		b.nodes[0].server.Close()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), 4*time.Minute), "without two of five")
		require.Greater(t, time.Until(hold.Deadline()), 3*time.Minute)

		b.nodes[2].server.Pause()
		before, start := hold.Deadline(), time.Now()
		err := hold.Extend(t.Context(), longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrLost)
		quorum := new(redlock.QuorumError)
		require.ErrorAs(t, err, &quorum)
		require.Equal(t, 2, quorum.Granted)
		require.LessOrEqual(t, time.Since(start), clientOptions.CommandTimeout)
		require.True(t, before.Equal(hold.Deadline()), "two nodes are no quorum")
		require.True(t, hold.Valid())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, hold.Extend(ctx, longLease), context.Canceled)
		require.True(t, hold.Valid())

		b.nodes[1].server.Resume()
		b.nodes[2].server.Resume()
		synctest.Wait()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
		unlock(t, hold)
		require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), rlock.ErrNotHeld)
	})
}
