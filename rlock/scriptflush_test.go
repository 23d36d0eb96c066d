package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestScriptFlushBetweenOperationsIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	lock := c.NewLock("order")
	flush := func() { s.Do(t, "SCRIPT", "FLUSH") }
	for range 2 {
		hold := take(t, lock, rlock.Watchdog)
		flush()
		inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
		flush()
		info, err := lock.Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, info.Count)
		flush()
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(before) }, "not renewed")
		flush()
		unlock(t, inner)
		flush()
		unlock(t, hold)
		flush()
		take(t, lock, longLease)
		flush()
		held, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		flush()
	}
}

func TestScriptFlushDuringOperationsIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	lock := c.NewLock("order")

	flushing, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	flushed := make(chan int)
	go func() {
		n := 0
		for ; flushing.Err() == nil; n++ {
			if _, err := s.Call("SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
				break
			}
		}
		flushed <- n
	}()

	redis := s.Client(t)
	var workers sync.WaitGroup
	sections := make([]int, 8)
	for i := range sections {
		workers.Go(func() {
			for flushing.Err() == nil {
				if err := countUnder(context.WithoutCancel(flushing), lock, redis, "counter"); err != nil {
					t.Error(err)
					return
				}
				sections[i]++
			}
		})
	}
	workers.Wait()
	total := 0
	for _, n := range sections {
		total += n
	}
	require.Equal(t, strconv.Itoa(total), s.DoString(t, "GET", "counter"))
	require.Positive(t, total)
	require.Greater(t, <-flushed, 10)
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}
