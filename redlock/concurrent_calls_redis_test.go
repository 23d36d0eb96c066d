//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// The margin of a deadline is for clocks that drift. What Redis still holds then is released
// nevertheless.
func TestUnlockAfterTheDeadlineLeavesNothing(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	hold := takeOnAll(t, redlock.NewOn(name, atOnce, clients...), servers, 3*time.Second)
	for _, s := range servers {
		s.Do(t, "PEXPIRE", name, "600000") // its clock stands still
	}
	receive(t, hold.Done(), "the hold has no end")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	waitUntilFree(t, servers...)
}
