//go:build !race

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// The crash case of TestRestartOfANodeThatForgetsGivesTheLockToTwoIfFsyncAlwaysIsStatedFalsely,
// without the false statement.
func TestNodeThatHasForgottenALockDoesNotCountUntilItsLeaseHasEnded(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	for what, asked := range map[string]rlock.Lease{
		"a lease": rlock.Lease(lease), "watchdog": rlock.Watchdog,
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, 5, rlock.Options{WatchdogLease: lease}, func(t *testing.T, w *world) {
				lockOf := func(clients []*rlock.Client) *redlock.Lock {
					return redlock.NewOn(name, redlock.Options{MaxLease: lease}, clients...)
				}
				first := lockOf(w.clients)
				second := lockOf(w.party(t, rlock.Options{WatchdogLease: lease}))
				for _, c := range w.clients[3:] {
					closeClient(t, c) // the first cannot reach d and e
				}
				hold := take(t, first, asked)
				require.Equal(t, 3, w.held(t))
				w.Servers[2].(interface{ Forget() }).Forget()
				require.Equal(t, 2, w.held(t))

				_, err := second.TryLock(t.Context(), rlock.NoWait, rlock.Lease(lease))
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorContains(t, err, "c: the node started less than MaxLease ago")
				quorum, delayed := quorumError(t, err), new(redlock.DelayedError)
				require.Equal(t, "c", quorum.Nodes[2].Server)
				require.ErrorAs(t, quorum.Nodes[2].Err, &delayed)
				require.Equal(t, lease+time.Second, delayed.For)
				require.False(t, delayed.Emptied)
				require.True(t, hold.Valid(), "otherwise this proves nothing")

				next := acquired(t, lockInBackground(t.Context(), second, rlock.Lease(lease)))
				require.False(t, time.Now().Before(hold.Deadline()))
				require.False(t, hold.Valid())
				require.True(t, next.Valid())
				unlock(t, next)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			})
		})
	}
}
