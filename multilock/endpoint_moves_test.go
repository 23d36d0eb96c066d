//go:build redis

package multilock_test

import (
	"testing"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestMultiLockFollowsAnEndpointThatMoves(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	replica := redistest.StartReplica(t, master)
	at := redistest.NewEndpoint(master)
	c := newClient(t, master, rlock.Options{}, at.Use)
	before := take(t, multilock.New(c.NewLock("a"), c.NewLock("b")), longLease)

	redistest.Promote(t, master, replica)
	at.Move(replica)
	unlock(t, before)
	after := multilock.New(c.NewLock("c"), c.NewLock("d"))
	unlock(t, acquired(t, lockInBackground(t.Context(), after, longLease)))
	requireFree(t, replica)
}
