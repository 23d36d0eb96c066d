//go:build !race

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests bound the commands of operations, as a gate against regressions that needs no clock.
// cost_scenarios_test.go bounds those of contention.

func TestCommandsOfEachOperation(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, k := range kinds {
		c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		unlock(t, take(t, k.contender(other, k.name), rlock.Lease(time.Minute)))
		lock, monitor := k.lock(c, k.name), s.Monitor(t)
		_, err := lock.Info(t.Context())
		require.NoError(t, err)
		monitor.Commands(t)
		costsOne := func(operation string) {
			t.Helper()
			commands := monitor.Commands(t)
			require.Len(t, commands, 1, "%s of a %s lock", operation, k.name)
			require.Equal(t, "evalsha", commands[0][0])
		}

		hold := acquired(t, lockInBackground(context.Background(), lock, rlock.Watchdog))
		costsOne("Lock")
		nested := takeWith(hold.Context(), t, lock, rlock.Lease(time.Minute))
		costsOne("nested TryLock")
		unlock(t, nested)
		costsOne("nested Unlock")
		require.NoError(t, hold.Extend(t.Context(), rlock.Lease(2*time.Minute)))
		costsOne("Extend")
		_, err = lock.Info(t.Context())
		require.NoError(t, err)
		costsOne("Info")
		unlock(t, hold)
		costsOne("Unlock")

		contender := take(t, k.contender(other, k.name), rlock.Lease(time.Minute))
		costsOne("TryLock without wait")
		_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		costsOne("TryLock that is refused")
		unlock(t, contender)
		if k.name == "read" {
			continue
		}
		loaded(t, s, "keep.lua")
		hold = take(t, rlock.AtLeast(lock, time.Hour), rlock.Watchdog)
		monitor.Commands(t)
		unlock(t, hold)
		costsOne("Unlock of AtLeast")
	}
}

// Rounds of renewals begin every 9 to 10 s.
func TestWatchdogRenewsAHundredLocksWithOneCommand(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, anonymous, func(t *testing.T, b *bubble, k kind) {
		const locks = 250
		for i := range locks {
			take(t, k.lock(b.client, fmt.Sprint("lock ", i)), rlock.Watchdog)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		renewals := b.called(k.renew)
		rounds := len(slices.Compact(slices.Clone(renewals)))
		require.Len(t, renewals, rounds*3)
		require.LessOrEqual(t, rounds, int(5*time.Minute/(9*time.Second)))
	})
}
