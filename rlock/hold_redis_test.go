//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLossIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		logged := new(logtest.Lines)
		lock := k.lock(newClient(t, s, rlock.Options{Logger: logged.Logger()}), k.name)
		outer := take(t, lock, 3*time.Second)
		takeWith(outer.Context(), t, lock, 3*time.Second)
		receive(t, outer.Done(), "the lease did not end")
		require.Error(t, outer.Unlock(t.Context()))
		eventually(t, func() bool { return len(logged.With("lost")) > 0 }, "the loss was logged")
		require.Len(t, logged.With("lost"), 1)
		require.Contains(t, logged.With("lost")[0], outer.Owner())
	})
}
