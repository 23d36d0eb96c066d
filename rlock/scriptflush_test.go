package rlock_test

import (
	"context"
	"slices"
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
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
		flush := func() { s.Do(t, "SCRIPT", "FLUSH") }
		lock := k.lock(c, k.name)
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
	})
}

func TestScriptFlushDuringOperationsIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	// a busy machine may take one of them
	c := newClient(t, s, rlock.Options{WatchdogLease: 9 * time.Second})

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
	var sections [2][]int
	excluding := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.shared })
	for i := range sections {
		sections[i] = make([]int, len(excluding))
		for j, k := range excluding {
			workers.Go(func() {
				for flushing.Err() == nil {
					ctx, lock := context.WithoutCancel(flushing), k.lock(c, k.name)
					if err := countUnder(ctx, lock, redis, "counter "+k.name); err != nil {
						t.Errorf("%s: %v", k.name, err)
						return
					}
					sections[i][j]++
				}
			})
		}
	}
	workers.Wait()
	for j, k := range excluding {
		total := sections[0][j] + sections[1][j]
		require.Equal(t, strconv.Itoa(total), s.DoString(t, "GET", "counter "+k.name), k.name)
		require.Positive(t, total)
		requireFree(t, s, k.name)
	}
	require.Greater(t, <-flushed, 10)
}
