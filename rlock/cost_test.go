//go:build !race

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests bound the commands of operations, as a gate against regressions that needs no clock.
// The race detector would only slow down their crowds.

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

// A hand-over within a process costs one: see internal/suite.
func TestContentionOfProcessesCostsTwoCommandsPerAcquisition(t *testing.T) {
	t.Parallel()
	const acquisitions = 640
	s := redistest.Start(t)
	locks := make([]*rlock.Lock, 2)
	for i := range locks {
		c := newClient(t, s, rlock.Options{})
		warm(t, c, "order")
		locks[i] = c.NewLock("order")
	}
	s.ResetStats(t)
	start := time.Now()
	var work sync.WaitGroup
	for _, lock := range locks {
		work.Go(func() {
			for range acquisitions / len(locks) {
				hold, err := lock.Lock(context.Background(), rlock.Watchdog)
				if assert.NoError(t, err) {
					assert.NoError(t, hold.Unlock())
				}
			}
		})
	}
	work.Wait()
	sent, stats := 0, s.CommandStats(t)
	for _, command := range []string{"evalsha", "eval", "subscribe", "unsubscribe"} {
		sent += stats[command]
	}
	// After 16 hand-overs, and after 100 ms, the lock is free once, and both ask.
	most := 2.25*acquisitions + float64(time.Since(start)/(100*time.Millisecond))
	require.Less(t, float64(sent), most)
}

// 16 acquisitions cost the release that goes to Redis. The first waiters ask, and after 100 ms
// another release goes to Redis.
func TestHotLockOfAProcessCostsOneCommandForManyAcquisitions(t *testing.T) {
	t.Parallel()
	const goroutines, each = 64, 50
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{Anonymous: true})
	warm(t, c, "order")
	s.ResetStats(t)
	start, inside := time.Now(), 0
	var work sync.WaitGroup
	for range goroutines {
		work.Go(func() {
			for range each {
				hold, err := c.NewLock("order").Lock(t.Context(), rlock.Watchdog)
				if assert.NoError(t, err) {
					inside++ // guarded by the lock
					assert.NoError(t, hold.Unlock())
				}
			}
		})
	}
	work.Wait()
	require.Equal(t, goroutines*each, inside)
	most := goroutines*each*0.15 + float64(2*time.Since(start)/(100*time.Millisecond))
	require.Less(t, float64(calls(s, "evalsha")), most)
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
