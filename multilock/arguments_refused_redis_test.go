//go:build redis

package multilock_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestSeveralServersNeedNamesThatAllProcessesKnow(t *testing.T) {
	t.Parallel()
	s, group := redistest.Start(t), redistest.StartSentinel(t)
	plain := newClient(t, s, rlock.Options{})
	unnamed := newClientOn(t, group.Client(t), rlock.Options{})
	another := newClientOn(t, group.Client(t), rlock.Options{})
	named := newClientOn(t, group.Client(t), rlock.Options{Server: "group"})
	requireInvalid(
		t,
		multilock.New(unnamed.NewLock("b"), plain.NewLock("a")),
		`"b"`,
		"rlock.Options.Server",
		"in all processes",
	)
	requireInvalid(
		t,
		multilock.New(plain.NewLock("a"), unnamed.NewLock("b")),
		`"b"`,
		"rlock.Options.Server",
		"in all processes",
	)
	requireInvalid(t, multilock.New(unnamed.NewLock("b"), another.NewLock("b")),
		"rlock.Options.Server")

	// A single Redis needs no name, and an address is one.
	unlock(t, take(t, multilock.New(unnamed.NewLock("b"), unnamed.NewFairLock("a")), longLease))
	unlock(t, take(t, multilock.New(named.NewLock("b"), plain.NewLock("a")), longLease))
	require.Empty(t, unnamed.NewLock("b").Server())
	require.Equal(t, "group", named.NewLock("b").Server())
	require.Equal(t, s.Addr(), plain.NewLock("a").Server())
}

// The client has two addresses and is not told which is the master's: two processes might name it
// differently.
func TestClientThatReadsFromReplicasHasNoNameOfItsOwn(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	other := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	reading := func(o *rueidis.ClientOption) {
		o.Standalone.ReplicaAddress = []string{replica.Addr()}
		o.SendToReplicas = func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }
	}
	c, plain := newClient(t, master, rlock.Options{}, reading), newClient(t, other, rlock.Options{})
	require.Empty(t, c.NewLock("a").Server())
	requireInvalid(
		t,
		multilock.New(c.NewLock("a"), plain.NewLock("b")),
		`"a"`,
		"rlock.Options.Server",
	)
	unlock(t, take(t, multilock.New(c.NewLock("a"), c.NewLock("b")), longLease))
	named := newClient(t, master, rlock.Options{Server: "master"}, reading)
	unlock(t, take(t, multilock.New(named.NewLock("a"), plain.NewLock("b")), longLease))
	requireFree(t, master, other)
}
