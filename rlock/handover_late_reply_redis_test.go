//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A waiter asked by itself, and found that it holds the lock. The grant message comes when its work
// is done and it releases the lock, in the one moment in which no one in its client seems to hold
// it.
func TestGrantThatComesDuringTheReleaseReleasesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		p := faultproxy.Start(t, s.Addr())
		gate := keepCommands(s.Client(t, through(p), redistest.OneConnection),
			loaded(t, s, k.release))
		c, other := newClientOn(t, gate, rlock.Options{}), newClient(t, s, rlock.Options{})
		t.Cleanup(p.Pass)
		t.Cleanup(gate.open)
		first := take(t, k.lock(other, k.name), 4*time.Second) // after which the waiter asks
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		second := take(t, k.lock(other, "another"), longLease)
		witness := registers(t, s, 1, k.lock(c, "another"), longLease)
		waitForQuiet(t, s)
		p.HoldMessages()
		unlock(t, first)
		hold := acquired(t, waiter)
		released := make(chan error, 1)
		go func() { released <- hold.Unlock(t.Context()) }()
		receive(t, gate.kept, "the release was not sent")
		unlock(t, second)
		p.Pass()
		acquired(t, witness) // by a message that came after the other one
		require.Never(t, func() bool { return len(gate.kept) > 0 }, 50*time.Millisecond,
			5*time.Millisecond, "it is released twice")
		gate.open()
		require.NoError(t, receive(t, released, "the release hangs"))
		waitUntilFree(t, s, k.name)
	})
}
