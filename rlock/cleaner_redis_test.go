//go:build redis

package rlock

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The first retries come soon, however many others fail.
func TestCleanerRetriesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withCleaner(t)
		down := stubbed("down", 1, func([]string) error { return fail() })
		for range 2000 {
			c.cleaner.add(down.left("1"))
		}
		time.Sleep(2 * time.Second)
		var tries []time.Duration
		began := time.Now()
		busy := stubbed("busy", 1, func([]string) error {
			tries = append(tries, time.Since(began))
			return fail()
		})
		c.cleaner.add(busy.left("1"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Less(t, tries[1], 15*time.Millisecond)
		require.Less(t, tries[4], 200*time.Millisecond)
		require.Greater(t, len(tries), 10)
		require.Less(t, len(tries), 50)
	})
}

// Cleanups pile up during an outage. Afterwards none of them may keep others out for long.
func TestCleanerFinishesSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, outage = 5000, 5 * time.Second
		c, _ := withCleaner(t)
		began := time.Now()
		var tries atomic.Int64
		lock := stubbed("job", 1, func([]string) error {
			tries.Add(1)
			if time.Since(began) < outage {
				return fail()
			}
			return nil
		})
		for range many {
			c.cleaner.add(lock.left("1"))
		}
		time.Sleep(outage)
		require.Less(t, tries.Load(), int64(15*many), "it keeps a processor busy")
		time.Sleep(time.Second)
		c.cleaner.mu.Lock()
		defer c.cleaner.mu.Unlock()
		require.Zero(t, c.cleaner.workers)
		require.Zero(t, cap(c.cleaner.ready)+len(c.cleaner.paused)+len(c.cleaner.lanes),
			"memory is kept")
	})
}
