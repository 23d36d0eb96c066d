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

// The reply that tells the next in the queue of its registration is late. Before it comes, the lock
// has been granted and released.
func TestGrantThatOvertakesTheReplyWithItsTicketIsAccepted(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		for range 10 {
			if overtaken(t, k) {
				return
			}
		}
		require.Fail(
			t,
			"too slow",
			"the lock has left the process after 100 ms each time, before it was passed on 16 times",
		)
	})
}

// overtaken plays that once. It returns false if the lock left the process too early.
func overtaken(t *testing.T, k kind) bool {
	t.Helper()
	const run = 16
	s := redistest.Start(t)
	gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.release))
	c := newClientOn(t, gate, rlock.Options{})
	t.Cleanup(gate.open)
	lock := k.lock(c, k.name)
	first := take(t, lock, longLease)
	var line []<-chan outcome
	for i := range run + 1 {
		line = append(line, lockInBackground(t.Context(), lock, longLease))
		eventually(t, func() bool { return rlock.Waiting(lock) == i+1 }, "it does not wait")
	}
	eventually(t, func() bool { return registrations(s, k.name) == 1 },
		"the head is not registered")
	other := registers(t, s, 2, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
	waitForQuiet(t, s)
	current := first
	for i, next := range line[:run] {
		go func() { _ = current.Unlock(t.Context()) }() // each is found to be held
		receive(t, gate.kept, "the release was not sent")
		gate.pass()
		select {
		case o := <-next:
			require.NoError(t, o.Err)
			current = o.Hold
			continue
		case o := <-other:
			require.NoError(t, o.Err)
			gate.open()
			unlock(t, o.Hold)
		case <-time.After(longWait):
			require.Fail(t, "the lock was granted to nobody")
		}
		for _, waiter := range line[i:] {
			unlock(t, acquired(t, waiter))
		}
		return false
	}

	released := make(chan error, 1)
	go func() { released <- current.Unlock(t.Context()) }()
	receive(t, gate.kept, "the release was not sent")
	elsewhere := acquired(t, other)
	require.Equal(t, 1, registrations(s, k.name), "the last waiter has one")
	unlock(t, elsewhere)
	require.Equal(t, c.ID(), holderOf(t, s, k.name))
	require.Empty(t, line[run])
	given := s.DoMap(t, "HGETALL", k.name)
	start := time.Now()
	gate.open()
	o := result(t, line[run])
	require.NoError(t, o.Err)
	require.Less(t, o.At.Sub(start), promptly)
	require.Equal(t, k.hash(o.Hold.Owner(), 1), given)
	require.NoError(t, receive(t, released, "the release hangs"))
	unlock(t, o.Hold)
	waitUntilFree(t, s, k.name)
	return true
}
