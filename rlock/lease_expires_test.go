//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Redisson's ExpiredObjectListener hears of a key that expires, and not of one that is deleted.
func TestLeaseThatRunsOutIsLeftToExpire(t *testing.T) {
	t.Parallel()
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{})
		hold := take(t, k.lock(c, k.name), 300*time.Millisecond)
		<-hold.Context().Done()
		require.ErrorIs(t, hold.Err(), rlock.ErrExpired)
		eventually(t, func() bool { return s.DoInt(t, "EXISTS", k.name) == 0 }, "it has expired")
		closeClient(t, c) // nothing is sent any more
		stats := s.CommandStats(t)
		require.Zero(t, stats["hdel"], "%v", stats)
	})
}
