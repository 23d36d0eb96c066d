package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The mistake: a middleware gives the request an owner, and goroutines below share it.
func TestOverlappingLevelsOfOneOwnerAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	c := newClient(t, redistest.Start(t), rlock.Options{Logger: log.Logger(), Debug: true})
	lock := c.NewLock("order")
	request := rlock.WithOwner(t.Context())
	for range 2 {
		first := takeWith(request, t, lock, longLease)
		second := takeWith(request, t, lock, longLease)
		unlock(t, first) // the second goroutine is still inside
		unlock(t, second)
	}
	closeClient(t, c)
	lines := log.With("did not exclude them")
	require.Len(t, lines, 1)
	require.Regexp(t, `first="acquired at .*locktest.go:\d+`, lines[0])
	require.Regexp(t, `second="acquired at .*locktest.go:\d+`, lines[0])
}

// Its context was passed down, so a text about contexts would lead nowhere.
func TestOwnerThatUsesTwoKindsUnderOneNameIsToldSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("x"), longLease)
	_, err := c.NewFairLock("x").Lock(hold.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrDeadlock)
	require.ErrorContains(t, err,
		`lock "x" is held by the caller itself as a reentrant lock, not a fair one`)
	require.ErrorContains(t, err, "use one kind of lock for one name")
	require.NotContains(t, err.Error(), "Context()")
	_, err = other.NewLock("x").Lock(hold.Context(), longLease)
	require.ErrorContains(t, err, `held by the caller itself through another client; use one client`)
	unlock(t, hold)
}

// Nothing wakes the waiter: it would notice the release up to five seconds later, in silence.
func TestWaiterForANameThatIsHeldAsAnotherKindWarnsOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	hold := take(t, newClient(t, s, rlock.Options{}).NewFairLock("x"), longLease)
	waiter := newClient(t, s, rlock.Options{Logger: log.Logger()})
	for range 2 {
		err := rlock.ErrOutcomeUnknown
		for errors.Is(err, rlock.ErrOutcomeUnknown) { // no reply in time
			_, err = waiter.NewLock("x").TryLock(t.Context(), 50*time.Millisecond, longLease)
		}
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	}
	closeClient(t, waiter)
	warnings := log.With("use one kind of lock for one name")
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0],
		"a caller waits for a plain lock, but the name is held as a fair lock")
	require.Contains(t, warnings[0], hold.Owner())
}

// Work under the inner level learns of the loss first, and may try again before the outer level has
// ended.
func TestOwnerThatLearnsOfALossAcquiresTheLockAnew(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
		owner := rlock.WithOwner(context.Background())
		outer := takeWith(owner, t, b.lock, rlock.Lease(time.Minute))
		inner := takeWith(owner, t, b.lock, rlock.Lease(time.Minute))
		for _, script := range []string{"reenter.lua", "read_reenter.lua"} {
			b.reply(script, func([]string) any { return 0 })
		}
		var again *rlock.Hold
		var err error
		rlock.Internals(compose.Access{}).OnEnd(inner, func(error) {
			again, err = b.lock.TryLock(owner, rlock.NoWait, rlock.Lease(time.Minute))
		})
		_, forced := b.lock.ForceUnlock(context.Background())
		require.NoError(t, forced)
		require.NoError(t, err)
		require.NotEqual(t, outer.Owner(), again.Owner())
		require.True(t, again.Valid())
		require.ErrorIs(t, outer.Unlock(), rlock.ErrLost)
		unlock(t, again)
		require.ErrorIs(t, b.lock.Unlock(owner), rlock.ErrNotHeld)
	})
}

// Waiters learn of a force unlock before its caller does. What they acquire then must not be freed.
func TestForceUnlockSparesTheNextHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, k := range []kind{kindNamed("reentrant"), kindNamed("write")} {
		take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.forceUnlock))
		lock := k.lock(newClientOn(t, gate, rlock.Options{}), k.name)
		t.Cleanup(gate.open)
		waiter := k.parked(t, s, lock)
		forcing := make(chan error, 1)
		go func() {
			_, err := lock.ForceUnlock(t.Context())
			forcing <- err
		}()
		next := acquired(t, waiter)
		gate.open()
		require.NoError(t, receive(t, forcing, "ForceUnlock hangs"))
		require.True(t, next.Valid())
		unlock(t, next)
	}
}

// An Unlock that gives up waiting for a nested Lock ends its own level while that adds another.
func TestLevelAddedWhileAnotherEndsIsRenewed(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		ctx := rlock.WithOwner(t.Context())
		outer := takeWith(ctx, t, b.lock, rlock.Lease(20*time.Second))
		renewed := takeWith(ctx, t, b.lock, rlock.Watchdog)
		proceed := make(chan struct{})
		b.reply("reenter.lua", func([]string) any {
			<-proceed
			return 1
		})
		nested := lockInBackground(ctx, b.lock, rlock.Watchdog)
		synctest.Wait()
		var inner *rlock.Hold
		rlock.Internals(compose.Access{}).OnEnd(renewed, func(error) {
			close(proceed)
			inner = acquired(t, nested)
		})
		require.Error(t, renewed.Unlock()) // another call of the owner is under way
		time.Sleep(5 * time.Minute)
		require.NoError(t, inner.Err())
		unlock(t, inner)
		unlock(t, outer)
	})
}

// The reply to a nested Lock comes after the deadline that it would move, while the goroutine that
// reports the loss is busy with that of another lock.
func TestNestedLockWhoseReplyIsTooLateIsLost(t *testing.T) {
	inBubble(t, rlock.Options{CommandTimeout: time.Hour}, func(t *testing.T, b *bubble) {
		const lease = 5 * time.Second // rueidis waits for longer
		ctx := rlock.WithOwner(t.Context())
		busy := take(t, b.client.NewLock("busy"), rlock.Lease(time.Second))
		reporting := make(chan struct{})
		defer close(reporting)
		rlock.Internals(compose.Access{}).OnEnd(busy, func(error) { <-reporting })
		takeWith(ctx, t, b.lock, rlock.Lease(lease))
		b.reply("reenter.lua", func([]string) any {
			time.Sleep(lease)
			return 1
		})
		_, err := b.lock.Lock(ctx, rlock.Lease(lease))
		require.ErrorIs(t, err, rlock.ErrLost)
	})
}

func TestReleaseOnCloseReleasesALockThatGetsAnotherLevelMeanwhile(t *testing.T) {
	inBubble(t, rlock.Options{ReleaseOnClose: true}, func(t *testing.T, b *bubble) {
		ctx := rlock.WithOwner(t.Context())
		takeWith(ctx, t, b.lock, rlock.Lease(time.Minute))
		proceed := make(chan struct{})
		b.reply("reenter.lua", func([]string) any {
			<-proceed
			return 1
		})
		whole := make(chan bool, 1)
		b.reply("release.lua", func(args []string) any {
			whole <- args[2] != "1" // the count that release_only leaves
			return released(args)
		})
		nested := lockInBackground(ctx, b.lock, rlock.Lease(time.Minute))
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- b.client.Close(t.Context()) }()
		synctest.Wait()
		close(proceed) // before the caller has noticed that the client closes
		require.True(t, <-whole)
		require.ErrorIs(t, result(t, nested).Err, rlock.ErrClosed)
		require.NoError(t, <-closed)
	})
}

// Otherwise a client would need more and more memory.
func TestClientForgetsAnOwnerThatHoldsNothing(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		for _, ctx := range []context.Context{t.Context(), rlock.WithOwner(t.Context())} {
			outer := takeWith(ctx, t, b.lock, rlock.Lease(time.Minute))
			unlock(t, takeWith(outer.Context(), t, b.lock, rlock.Lease(time.Minute)))
			require.NotZero(t, rlock.Sessions(b.client))
			unlock(t, outer)
			b.reply(k.acquire, heldFor(60_000))
			for _, wait := range []time.Duration{rlock.NoWait, time.Second} {
				_, err := b.lock.TryLock(ctx, wait, rlock.Lease(time.Minute))
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			ctx, cancel := context.WithCancel(ctx)
			waiter := lockInBackground(ctx, b.lock, rlock.Lease(time.Minute))
			synctest.Wait()
			cancel()
			require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
			time.Sleep(time.Minute) // what cleans up after the waiters has a session as well
			require.Zero(t, rlock.Sessions(b.client))
			b.reply(k.acquire, granted[k.acquire])
		}
	})
}
