package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// unnamed returns a client of one of two servers whose name is unknown.
func unnamed(t testing.TB, servers []*redistest.Server, i int) *rlock.Client {
	return newClientOn(t, servers[i].Client(t, func(o *rueidis.ClientOption) {
		// which of them is the master's is unknown
		o.Standalone.ReplicaAddress = []string{servers[1-i].Addr()}
		o.SendToReplicas = func(rueidis.Completed) bool { return false }
	}), rlock.Options{})
}

func TestWhatCanNeverBeLockedIsInvalid(t *testing.T) {
	t.Parallel()
	servers := redistest.StartAll(t, 3)
	client := func(i int, o rlock.Options) *rlock.Client {
		return newClientOn(t, servers[i].Client(t), o)
	}
	var clients []*rlock.Client
	for i := range servers {
		clients = append(clients, client(i, rlock.Options{Server: called(i)}))
	}
	with := func(l *rlock.Lock) *redlock.Lock {
		return redlock.New(clients[1].NewLock(name), clients[2].NewLock(name), l)
	}
	options := func(o redlock.Options) *redlock.Lock { return redlock.NewOn(name, o, clients...) }
	good := options(redlock.Options{MaxLease: time.Minute, NodeTimeout: time.Second})
	other := client(0, rlock.Options{WatchdogLease: time.Second})
	twin := client(0, rlock.Options{Server: "b"})
	without := unnamed(t, servers[:2], 0)
	for what, c := range map[string]struct {
		lock  *redlock.Lock
		lease rlock.Lease
		says  string
	}{
		"no locks":      {redlock.New(), rlock.Lease(time.Second), "there are no nodes"},
		"no clients":    {redlock.NewOn(name, atOnce), rlock.Lease(time.Second), "there are no nodes"},
		"a nil lock":    {with(nil), rlock.Lease(time.Second), "node 3 of 3 is nil"},
		"a nil client":  {redlock.NewOn(name, atOnce, nil, other), longLease, "node 1 of 2 is nil"},
		"a fair lock":   {with(clients[0].NewFairLock(name)), longLease, "not a plain lock"},
		"an empty name": {redlock.NewOn("", atOnce, clients...), rlock.Lease(time.Second), "name"},
		"one client twice": {with(clients[1].NewLock("another")), rlock.Lease(time.Second),
			"nodes 1 and 3 are on one server (b)"},
		"one unnamed client twice": {redlock.NewOn(name, atOnce, without, clients[2], without),
			rlock.Lease(time.Second), "nodes 1 and 3 are on one server (the same client)"},
		"one address twice": {redlock.NewOn(name, atOnce, other, client(0, rlock.Options{})),
			rlock.Lease(time.Second), "on one server (" + servers[0].Addr()},
		"one server's name twice": {with(twin.NewLock(name)), longLease, "on one server (b)"},
		"different watchdogs":     {with(other.NewLock(name)), rlock.Lease(time.Second), "WatchdogLease"},
		"a negative NodeTimeout":  {options(redlock.Options{NodeTimeout: -1}), 1e9, "NodeTimeout"},
		"a negative MaxLease":     {options(redlock.Options{MaxLease: -1}), 1e9, "MaxLease"},
		"a lease beyond MaxLease": {good, rlock.Lease(time.Minute + time.Millisecond), "MaxLease"},
		"a watchdog beyond MaxLease": {options(redlock.Options{MaxLease: time.Second}),
			rlock.Watchdog, "MaxLease"},
	} {
		_, err := c.lock.TryLock(t.Context(), rlock.NoWait, c.lease)
		require.ErrorIs(t, err, rlock.ErrInvalid, what)
		require.ErrorContains(t, err, c.says, what)
		require.ErrorContains(t, err, "holdfast: lock ", what)
		require.Error(t, c.lock.Unlock(t.Context()), what)
		_ = c.lock.WithOptions(redlock.Options{}).Name() + c.lock.Server() // does not panic
	}
}

func TestNamesAreThoseOfTheNodesInAnyOrder(t *testing.T) {
	t.Parallel()
	inBubbleOf(t, rlock.Options{NameMapper: rlock.Prefix("app:")}, atOnce,
		func(t *testing.T, b *bubble) {
			c := b.clients
			require.Equal(t, "app:order", b.lock.Name())
			require.Equal(t, "a,b,c,d,e", b.lock.Server())
			for _, l := range []*redlock.Lock{
				redlock.New(c[0].NewLock("x"), c[1].NewLock("y"), c[2].NewLock("z")),
				redlock.New(c[2].NewLock("z"), c[1].NewLock("y"), c[0].NewLock("x")),
			} {
				require.Equal(t, "app:x,app:y,app:z", l.Name())
				require.Equal(t, "a,b,c", l.Server())
				hold := take(t, l.WithOptions(atOnce), longLease)
				require.Equal(t, l.Name(), hold.Name())
				unlock(t, hold)
				synctest.Wait()
			}
		})
}

// They count from 1, in the order in which they were given.
func TestErrorsNumberTheNodesOfServersWithoutAName(t *testing.T) {
	t.Parallel()
	servers := redistest.StartAll(t, 2)
	a, b := unnamed(t, servers, 0), unnamed(t, servers, 1)
	servers[1].Do(t, "HSET", name, "somebody", "1")
	lock := redlock.NewOn(name, atOnce, b, a)
	require.Empty(t, lock.Server())
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorContains(t, err, "node 1: held by somebody")
	require.NotContains(t, err.Error(), "node 0")

	named := newClientOn(t, servers[1].Client(t), rlock.Options{})
	_, err = multilock.New(lock, named.NewLock("alone")).
		TryLock(t.Context(), time.Second, rlock.Lease(time.Minute))
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, "rlock.Options.Server")
	eventually(t, func() bool { return len(servers[0].Keys(t)) == 0 }, "it is free")
}
