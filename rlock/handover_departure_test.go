//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests are about waiters that leave while they are granted the lock. It must go to the next
// one without delay, and nothing of theirs may remain.

func TestSuccessorThatLeavesDuringTheReleasePassesTheLockOn(t *testing.T) {
	t.Parallel()
	for stage, unsent := range map[string]bool{
		"before it is executed": true, "after it was executed": false,
	} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			onEach(t, passing(), func(t *testing.T, k kind) {
				for i := range exits(t, nil) {
					leavesAsSuccessor(t, k, unsent, i)
				}
			})
		})
	}
}

// leavesAsSuccessor has a waiter leave while the release that names it as the successor is on its
// way there, or its reply on its way back.
func leavesAsSuccessor(t *testing.T, k kind, unsent bool, exiting int) {
	t.Helper()
	s := redistest.Start(t)
	gate := keepReplies(s.Client(t, redistest.OneConnection), "the owner, who is not known yet")
	gate.unsent = unsent
	c := newClientOn(t, gate, rlock.Options{})
	t.Cleanup(gate.open)
	k.warm(t, c, k.name)
	way := exits(t, c)[exiting]
	first := take(t, k.lock(c, k.name), longLease)
	gate.argument = k.field(first.Owner()) // nothing is in flight
	successor, leave := way.begin(k.lock(c, k.name), longLease)
	k.waitForListeners(t, s, k.name, 1)
	next := k.waitsElsewhere(t, s, 2)
	released := make(chan error, 1)
	go func() { released <- first.Unlock(t.Context()) }()
	receive(t, gate.kept, "the release was not sent")
	require.Equal(t, c.ID(), holderOf(t, s, k.name))
	require.Equal(t, unsent, s.DoString(t, "HGET", k.name, k.field(first.Owner())) != "",
		"it is handed over when it is executed")
	leave()
	require.ErrorIs(t, result(t, successor).Err, way.err, way.name)
	waitForQuiet(t, s) // its withdrawal found a registration, or none

	start := time.Now()
	gate.open()
	require.NoError(t, receive(t, released, "the release hangs"))
	o := result(t, next)
	require.NoError(t, o.Err)
	require.Less(t, o.At.Sub(start), promptly, "after a waiter that %s", way.name)
	unlock(t, o.Hold)
	waitUntilFree(t, s, k.name)
}

// waitsElsewhere starts a waiter in a new client, and returns when that many clients wait for the
// lock.
func (k kind) waitsElsewhere(t *testing.T, s *redistest.Server, n int) <-chan outcome {
	t.Helper()
	waiter := lockInBackground(t.Context(), k.lock(newClient(t, s, rlock.Options{}), k.name),
		longLease)
	k.waitForListeners(t, s, k.name, n)
	waitForQuiet(t, s)
	return waiter
}

func TestWaiterThatLeavesDuringItsGrantPassesTheLockOn(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		for i := range exits(t, nil) {
			s := redistest.Start(t)
			c, p := proxied(t, s, rlock.Options{})
			way := exits(t, c)[i]
			first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
			var leave func()
			leaver := registersBy(t, s, 1, k.name, func() (waiter <-chan outcome) {
				waiter, leave = way.begin(k.lock(c, k.name), longLease)
				return waiter
			})
			next := registers(t, s, 2, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
			p.HoldMessages()
			unlock(t, first)
			require.Equal(t, c.ID(), holderOf(t, s, k.name))
			require.Empty(t, leaver, "it got the message")
			leave()
			o := result(t, leaver)
			require.ErrorIs(t, o.Err, way.err, way.name)
			left := o.At

			o = result(t, next)
			require.NoError(t, o.Err)
			require.Less(t, o.At.Sub(left), promptly, "after a waiter that %s", way.name)
			sent := calls(s, "evalsha")
			p.Pass()                        // the grant is not its own any more
			if way.err != rlock.ErrClosed { //nolint:errorlint // compared by identity on purpose
				eventually(t, func() bool { return calls(s, "evalsha") > sent },
					"the message was not answered")
			}
			require.Equal(t, k.hash(o.Hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			unlock(t, o.Hold)
			waitUntilFree(t, s, k.name)
		}
	})
}

func TestWaiterThatLeavesBeforeTheReleaseIsUnregistered(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		for i := range exits(t, nil) {
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{})
			way := exits(t, c)[i]
			first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
			var leave func()
			leaver := registersBy(t, s, 1, k.name, func() (waiter <-chan outcome) {
				waiter, leave = way.begin(k.lock(c, k.name), longLease)
				return waiter
			})
			leave()
			require.ErrorIs(t, result(t, leaver).Err, way.err)
			eventually(t, func() bool { return registrations(s, k.name) == 0 },
				"the registration of a waiter that "+way.name)
			unlock(t, first)
			requireFree(t, s, k.name)
		}
	})
}

// The reply that registers a waiter comes after it has left: the command was executed late.
func TestRegistrationThatComesAfterItsOwnerLeftIsRemovedWithTheLock(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		late := c.ID() + ":999999 " + "600000 " + map[bool]string{true: "f", false: "p"}[k.fenced]
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		s.Do(t, "ZADD", waitersKey(k.name), "1", late) // the oldest
		next := registers(t, s, 3, k.lock(other, k.name), longLease)
		start := time.Now()
		unlock(t, first)
		o := result(t, waiter)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(start), promptly)
		require.Equal(t, k.hash(o.Hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, o.Hold)
		unlock(t, acquired(t, next))
		waitUntilFree(t, s, k.name)
	})
}

// Nobody knows what a waiter is about to do when it is granted the lock: it may leave at that very
// moment.
func TestWaitersThatLeaveAtTheMomentOfTheReleaseKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	const rounds = 60
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		for name, leaves := range map[string]*rlock.Client{"here": c, "elsewhere": other} {
			for round := range rounds {
				// A late command of the last waiter that left may hold the lock for a moment.
				first := acquired(t, lockInBackground(t.Context(), k.lock(c, k.name), longLease))
				ctx, cancel := context.WithCancel(t.Context())
				leaver := lockInBackground(ctx, k.lock(leaves, k.name), longLease)
				eventually(t, func() bool { return rlock.Waiting(k.lock(leaves, k.name)) == 1 },
					"the first does not wait")
				next := lockInBackground(t.Context(), k.lock(leaves, k.name), longLease)
				eventually(t, func() bool { return rlock.Waiting(k.lock(leaves, k.name)) == 2 },
					"the second does not wait")
				k.waitForListeners(t, s, k.name, 1)
				go func() {
					// a hand-over takes about 500 us
					pause(ctx.Done(), time.Duration(round)*20*time.Microsecond)
					cancel()
				}()
				start := time.Now()
				unlock(t, first)
				if o := result(t, leaver); o.Err == nil {
					unlock(t, o.Hold)
				} else {
					require.ErrorIs(t, o.Err, context.Canceled)
				}
				o := result(t, next)
				require.NoError(t, o.Err)
				require.Less(t, o.At.Sub(start), locktest.Missed, "round %d, %s", round, name)
				unlock(t, o.Hold)
				waitUntilFree(t, s, k.name)
			}
		}
	})
}
