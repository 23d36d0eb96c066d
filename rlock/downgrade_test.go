//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// readingStepwise returns a lock that releases read holds when it is told to.
func readingStepwise(
	t *testing.T, s *redistest.Server, options rlock.Options,
) (*rlock.ReadWriteLock, *stepwise) {
	t.Helper()
	gate := &stepwise{Client: s.Client(t, redistest.OneConnection),
		argument: loaded(t, s, "read_release.lua"),
		arrived:  make(chan struct{}, 1000), step: make(chan struct{})}
	c := newClientOn(t, gate, options)
	t.Cleanup(func() { close(gate.step) }) // before the client is closed
	return c.NewReadWriteLock("page"), gate
}

// The next read hold of a writer has the name of the previous one. What cleans up the previous one
// must leave it alone.
func TestWriterKeepsItsNewReadLockWhenTheLostOneIsCleanedUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock, gate := readingStepwise(t, s, rlock.Options{})
	owner := rlock.WithOwner(t.Context())
	write := takeWith(owner, t, lock.Write(), rlock.Lease(time.Minute))
	// drain lets all clean-ups pass that come before an outcome, or within a moment.
	drain := func(until <-chan outcome) (o outcome) {
		late := time.After(20 * time.Millisecond)
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
		require.Equal(t, "1", s.DoString(t, "HGET", "page", hold.Owner()))
		drain(inBackground(func() (*rlock.Hold, error) { return nil, hold.Unlock() }))
	}
	unlock(t, write)
	requireFree(t, s, "page")
}
