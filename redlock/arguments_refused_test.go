package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestWhatCanNeverBeLockedIsInvalid(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	plain := func(c *rlock.Client) *rlock.Lock { return c.NewLock(name) }
	rest := []*rlock.Lock{plain(clients[1]), plain(clients[2])}
	with := func(l *rlock.Lock) *redlock.Lock { return redlock.New(append(rest[:2:2], l)...) }
	options := func(o redlock.Options) *redlock.Lock { return redlock.NewOn(name, o, clients...) }
	unnamed := func(mutators ...func(*rueidis.ClientOption)) *rlock.Client {
		return newClientOn(t, servers[1].Client(t, mutators...), rlock.Options{})
	}
	sameAddress := unnamed()
	otherLease := newClientOn(t, servers[0].Client(t), rlock.Options{WatchdogLease: time.Second})
	sameName := newClientOn(t, servers[0].Client(t), rlock.Options{Server: "b"})
	good := redlock.NewOn(
		name,
		redlock.Options{MaxLease: time.Minute, NodeTimeout: time.Second},
		clients...)

	for _, c := range []struct {
		what        string
		lock        *redlock.Lock
		wait, lease time.Duration
		says        string
	}{
		{"no locks", redlock.New(), 0, time.Second, "no nodes"},
		{"no clients", redlock.NewOn(name, redlock.Options{}), 0, time.Second, "no nodes"},
		{"a nil lock", with(nil), 0, time.Second, "node 3 of 3 is nil"},
		{"a nil client", redlock.NewOn(name, redlock.Options{}, nil, clients[1]),
			0, time.Second, "node 1 of 2 is nil"},
		{"a fair lock", with(clients[0].NewFairLock(name)), 0, time.Second, "not a plain one"},
		{"a read lock", with(clients[0].NewReadWriteLock(name).Read()),
			0, time.Second, "not a plain one"},
		{"a write lock", with(clients[0].NewReadWriteLock(name).Write()),
			0, time.Second, "not a plain one"},
		{"a fenced lock", with(clients[0].NewFencedLock(name)), 0, time.Second, "not a plain one"},
		{"an empty name", redlock.NewOn("", redlock.Options{}, clients...), 0, time.Second, "name"},
		{"one client twice", with(clients[1].NewLock("another")), 0, time.Second, "on one server"},
		{"one address twice", redlock.NewOn(name, redlock.Options{}, sameAddress, unnamed()),
			0, time.Second, "on one server (" + servers[1].Addr()},
		{"one server's name twice", with(plain(sameName)), 0, time.Second, "on one server (b)"},
		{"different watchdogs", with(plain(otherLease)), 0, time.Second, "WatchdogLease"},
		{"a negative NodeTimeout", options(redlock.Options{NodeTimeout: -1}),
			0, time.Second, "NodeTimeout"},
		{"a negative MaxLease", options(redlock.Options{MaxLease: -1}), 0, time.Second, "MaxLease"},
		{"a negative wait", good, -1, time.Second, "is negative"},
		{"no lease", good, 0, 0, "the lease is 0"},
		{"a lease that is over at once", good, 0, 2 * time.Millisecond, "at least 3ms"},
		{"a lease of less than a millisecond", good, 0, time.Microsecond, "at least 3ms"},
		{"a lease longer than MaxLease", good, 0, time.Minute + time.Millisecond, "MaxLease"},
		{"a watchdog longer than MaxLease", options(redlock.Options{MaxLease: time.Second}),
			0, rlock.Watchdog, "MaxLease"},
	} {
		_, err := c.lock.TryLock(t.Context(), c.wait, c.lease)
		require.ErrorIs(t, err, rlock.ErrInvalid, c.what)
		require.ErrorContains(t, err, c.says, c.what)
		require.ErrorContains(t, err, "holdfast: redlock ", c.what)
		if c.wait >= 0 {
			_, err := c.lock.Lock(t.Context(), c.lease)
			require.ErrorIs(t, err, rlock.ErrInvalid, c.what)
		}
		require.NotPanics(t, func() { err = c.lock.Unlock(t.Context()) }, c.what)
		require.Error(t, err, c.what)
		require.NotPanics(t,
			func() { _ = c.lock.WithOptions(redlock.Options{}).Name() + c.lock.Server() }, c.what)
	}
	for _, lease := range []time.Duration{3 * time.Millisecond, time.Minute} {
		hold, err := good.TryLock(t.Context(), 0, lease)
		require.NotErrorIs(t, err, rlock.ErrInvalid, lease)
		if err == nil {
			_ = hold.Unlock(t.Context()) // ErrLost if the shorter lease is over
		}
		waitUntilFree(t, servers...)
	}
	// Wrong options are no fault of the nodes.
	unlock(t, take(t, options(redlock.Options{MaxLease: -1}).WithOptions(atOnce), longLease))
	waitUntilFree(t, servers...)
}

func TestNamesAreThoseOfTheNodes(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	l := redlock.NewOn(name, redlock.Options{}, clients...)
	require.Equal(t, name, l.Name())
	require.Equal(t, "a,b,c", l.Server())
	differently := redlock.New(
		clients[0].NewLock("x"), clients[1].NewLock("y"), clients[2].NewLock("z"),
	).WithOptions(atOnce)
	require.Equal(t, "x,y,z", differently.Name())
	hold := take(t, differently, longLease)
	require.Equal(t, "x,y,z", hold.Name())
	eventually(t, func() bool { return len(keysOf(t, servers...)) == 3 }, "held everywhere")
	require.Equal(t, []string{"a/x", "b/y", "c/z"}, keysOf(t, servers...))
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestNameIsTheSameHoweverTheLockIsMade(t *testing.T) {
	t.Parallel()
	_, clients := startFive(t, rlock.Options{NameMapper: rlock.Prefix("app:")})
	var locks []*rlock.Lock
	for _, c := range clients {
		locks = append(locks, c.NewLock("x"))
	}
	require.Equal(t, "app:x", redlock.New(locks...).Name())
	require.Equal(t, "app:x", redlock.NewOn("x", atOnce, clients...).Name())
}
