package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// nests says which kinds an owner may acquire again while it holds them.
func nests(k Kind) bool { return !k.Flat }

// depth returns how many holds of a lock an owner may have at once, in a test of several.
func (k Kind) depth() int {
	if k.Flat {
		return 1
	}
	return 3
}

// nest acquires a lock as often as its owner may: depth times. ctx carries an owner.
func (k Kind) nest(
	ctx context.Context, t *testing.T, lock rlock.Locker, lease rlock.Lease,
) (holds []*rlock.Hold) {
	t.Helper()
	for range k.depth() {
		holds = append(holds, locktest.AcquireWith(ctx, t, lock, lease))
	}
	return holds
}

// parts returns the locks of package rlock that make up a lock.
func (k Kind) parts(p *Party, name string) (parts []*rlock.Lock) {
	switch l := k.New(p, name).(type) {
	case *rlock.Lock:
		return []*rlock.Lock{l}
	case *redlock.Lock:
		for _, c := range p.Clients {
			parts = append(parts, c.NewLock(name))
		}
	default: // see Multi
		for _, number := range []string{"1", "2", "3"} {
			parts = append(parts, p.Client.NewLock(name+":"+number))
		}
	}
	return parts
}

// force frees a lock, whoever holds it, as a party may do it.
func (k Kind) force(t *testing.T, p *Party, name string) {
	t.Helper()
	for _, part := range k.parts(p, name) {
		_, err := part.ForceUnlock(t.Context())
		require.NoError(t, err)
	}
}

// delete deletes a lock from all servers.
func (e *Env) delete(t *testing.T, k Kind, p *Party, name string) {
	t.Helper()
	for _, part := range k.parts(p, name) {
		for _, s := range e.Servers {
			s.Do(t, "DEL", part.Name())
		}
	}
}

// requireBusy requires that an owner does not get a lock.
func requireBusy(t *testing.T, lock rlock.Locker, why ...any) {
	t.Helper()
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired, why...)
}

// requireLost requires that a hold ends soon with ErrLost, and its context for the same reason.
func requireLost(t *testing.T, hold *rlock.Hold) {
	t.Helper()
	locktest.Receive(t, hold.Done(), "a lost hold goes on")
	var lost *rlock.LostError
	require.ErrorAs(t, hold.Err(), &lost)
	require.Equal(t, hold.Name(), lost.Lock)
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.False(t, hold.Valid())
	locktest.Receive(t, hold.Context().Done(), "the context of a lost hold goes on")
	require.Equal(t, hold.Err(), context.Cause(hold.Context()))
}

// acquiredAfter returns the hold of a waiter, which must get in soon, but not before a deadline.
func acquiredAfter(
	t *testing.T, deadline time.Time, waiter <-chan locktest.Outcome,
) *rlock.Hold {
	t.Helper()
	o := locktest.Result(t, waiter)
	require.NoError(t, o.Err)
	require.False(t, o.At.Before(deadline), "two held it at the same time")
	return o.Hold
}

// requireExpires waits until a hold ends, and requires that it is lost, in virtual time exactly at
// its deadline.
func requireExpires(t *testing.T, hold *rlock.Hold) {
	t.Helper()
	deadline := hold.Deadline()
	time.Sleep(time.Until(deadline))
	requireLost(t, hold)
	require.Zero(t, time.Since(deadline))
	require.ErrorIs(t, hold.Err(), rlock.ErrExpired)
}
