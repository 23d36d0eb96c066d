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
	c := newClient(t, s, rlock.Options{})

	flushing, stop := context.WithCancel(t.Context())
	go func() {
		defer stop()
		for range 200 {
			if _, err := s.Call("SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
				return
			}
		}
	}()

	redis := s.Client(t)
	var workers sync.WaitGroup
	var sections [2][]int
	excluding := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.shared })
	for i := range sections {
		sections[i] = make([]int, len(excluding))
		for j, k := range excluding {
			workers.Go(func() {
				for sections[i][j] == 0 || flushing.Err() == nil {
					lock := k.lock(c, k.name)
					err := countUnder(t.Context(), lock, redis, "counter "+k.name)
					if err != nil {
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
		requireFree(t, s, k.name)
	}
}
