package rlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

func TestCallersWaitWhileManyRepliesAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backlog{byLock: make(map[string]debt)}
		waitFor := func(lock string, limit time.Duration) (passed bool, after time.Duration) {
			began := time.Now()
			budget := wait.NewBudget(t.Context(), nil, limit)
			defer budget.Stop()
			return b.waitForRoom(lock, budget), time.Since(began)
		}
		for range mostOwed {
			b.add("job", 1)
		}
		passed, after := waitFor("job", time.Second)
		require.True(t, passed, "as many replies may be lost")
		require.Zero(t, after)

		b.add("job", 1)
		passed, after = waitFor("job", time.Second)
		require.False(t, passed)
		require.Equal(t, time.Second, after)
		passed, _ = waitFor("another", time.Second)
		require.True(t, passed)

		time.AfterFunc(300*time.Millisecond, func() { b.add("job", -1) })
		passed, after = waitFor("job", time.Second)
		require.True(t, passed)
		require.Equal(t, 300*time.Millisecond, after)
		b.add("job", -mostOwed)
		require.Empty(t, b.byLock)
	})
}
