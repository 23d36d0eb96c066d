//go:build redis

package rlock_test

import (
	"context"
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
	const lease = time.Second
	for name, lose := range map[string]func(*testing.T, *rlock.Hold){
		"its deadline ended it": func(t *testing.T, read *rlock.Hold) {
			receive(t, read.Done(), "the read lease does not end")
		},
		"it was released after its deadline": func(t *testing.T, read *rlock.Hold) {
			<-time.After(time.Until(read.Deadline()))
			require.ErrorIs(t, read.Unlock(t.Context()), rlock.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			lock, gate := readingStepwise(t, s, rlock.Options{})
			owner := rlock.WithOwner(t.Context())
			write := takeWith(owner, t, lock.Write(), time.Minute)
			for range 3 {
				read := takeWith(owner, t, lock.Read(), lease)
				lose(t, read)
				receive(t, gate.arrived, "nothing is cleaned up")
				again := lockInBackground(owner, lock.Read(), time.Minute)
				gate.step <- struct{}{}
				var hold *rlock.Hold
				for hold == nil {
					select {
					case <-gate.arrived: // a second clean-up comes first
						gate.step <- struct{}{}
					case o := <-again:
						require.NoError(t, o.Err)
						hold = o.Hold
					case <-time.After(longWait):
						require.FailNow(t, "the acquisition has not ended")
					}
				}
				late := time.After(20 * time.Millisecond)
				for waiting := true; waiting; {
					select {
					case <-gate.arrived: // one more clean-up
						gate.step <- struct{}{}
					case <-late:
						waiting = false
					}
				}
				require.Equal(t, "1", s.DoString(t, "HGET", "page", hold.Owner()))
				released := make(chan error, 1)
				go func() { released <- hold.Unlock(context.Background()) }()
				for ended := false; !ended; {
					select {
					case <-gate.arrived: // the release, or a clean-up that is later still
						gate.step <- struct{}{}
					case err := <-released:
						require.NoError(t, err)
						ended = true
					case <-time.After(longWait):
						require.FailNow(t, "the release has not ended")
					}
				}
			}
			unlock(t, write)
			requireFree(t, s, "page")
		})
	}
}
