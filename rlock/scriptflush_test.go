package rlock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

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
