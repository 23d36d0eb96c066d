package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/suite"
	"holdfast/rlock"
)

// readingStepwise returns a lock that releases read holds when it is told to.
func readingStepwise(
	t *testing.T, s suite.Server, options rlock.Options,
) (*rlock.ReadWriteLock, *stepwise) {
	t.Helper()
	gate := &stepwise{Client: s.Client(t, redistest.OneConnection),
		argument: load(t, s, "read_release.lua"),
		arrived:  make(chan struct{}, 1000), step: make(chan struct{})}
	c := newClientOn(t, gate, options)
	t.Cleanup(func() { close(gate.step) }) // before the client is closed
	return c.NewReadWriteLock("page"), gate
}

// The next read hold of a writer has the name of the previous one. What cleans up the previous one
// must leave it alone.
func TestWriterKeepsItsNewReadLockWhenTheLostOneIsCleanedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite.Virtual.Start(t, 1)[0]
		lock, gate := readingStepwise(t, s, rlock.Options{})
		owner := rlock.WithOwner(t.Context())
		write := takeWith(owner, t, lock.Write(), rlock.Lease(time.Minute))
		// drain lets all clean-ups pass that come before an outcome, or within a moment.
		drain := func(until <-chan outcome) (o outcome) {
			late := time.After(time.Second)
			if until != nil {
				late = time.After(longWait)
			}
			for {
				select {
				case <-gate.arrived:
					gate.step <- struct{}{}
				case o = <-until:
					require.NoError(t, o.Err)
					return o
				case <-late:
					require.Nil(t, until, "it has not ended")
					return o
				}
			}
		}
		for range 3 {
			read := takeWith(owner, t, lock.Read(), rlock.Lease(time.Second))
			receive(t, read.Done(), "the read lease does not end")
			receive(t, gate.arrived, "nothing is cleaned up")
			again := lockInBackground(owner, lock.Read(), rlock.Lease(time.Minute))
			gate.step <- struct{}{}
			hold := drain(again).Hold
			drain(nil)
			require.Equal(t, "1", s.Do(t, "HGET", "page", hold.Owner()))
			drain(inBackground(func() (*rlock.Hold, error) { return nil, hold.Unlock() }))
		}
		unlock(t, write)
		require.Equal(t, int64(0), s.Do(t, "EXISTS", "page"))
	})
}
