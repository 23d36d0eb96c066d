package multilock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// requireInvalid requires that every use of a lock is refused before anything is sent, with a text
// that says why.
func requireInvalid(t *testing.T, lock *multilock.Lock, texts ...string) {
	t.Helper()
	_, err := lock.Lock(t.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	_, err = multilock.New(lock).TryLock(t.Context(), longWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid, "as a part")
	require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
}

func TestPartsThatCanNeverBeHeldTogetherAreRefused(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	again, _ := p.clients(t, rlock.Options{})
	first, second := p.first.Monitor(t), p.second.Monitor(t)
	for name, c := range map[string]struct {
		locks []rlock.Locker
		texts []string
	}{
		"none":              {nil, []string{"no locks"}},
		"only an empty one": {[]rlock.Locker{multilock.New()}, []string{"no locks"}},
		"nil": {[]rlock.Locker{p.client.NewLock("a"), nil},
			[]string{"nil", `multilock "a"`}},
		"a nil pointer": {[]rlock.Locker{p.client.NewLock("a"), (*rlock.Lock)(nil)}, []string{"nil"}},
		"two clients": {[]rlock.Locker{p.client.NewLock("a"), again.NewLock("a")},
			[]string{`"a" on first`, "two clients"}},
		"two clients nested": {
			[]rlock.Locker{multilock.New(p.client.NewLock("a")), multilock.New(again.NewLock("a"))},
			[]string{"two clients"}},
		"two clients, one in between": {
			[]rlock.Locker{p.client.NewLock("b"), p.client.NewLock("a"), again.NewLock("b")},
			[]string{`"b" on first`, "two clients"}},
		"fair and fair of one queue": {[]rlock.Locker{p.client.NewFairLock("a"),
			p.client.NewFairLock("b"), p.client.NewFairLock("{a}")},
			[]string{`"a" and "{a}" share a queue`}},
		"plain and fair": {[]rlock.Locker{p.client.NewLock("a"), p.client.NewFairLock("a")},
			[]string{`"a" as two kinds`}},
		"plain and fenced": {[]rlock.Locker{p.client.NewLock("a"), p.client.NewFencedLock("a")},
			[]string{`"a" as two kinds`}},
		"plain and read": {[]rlock.Locker{p.client.NewLock("a"), p.client.NewReadWriteLock("a").Read()},
			[]string{`"a" as two kinds`}},
		"read and fair": {
			[]rlock.Locker{p.client.NewReadWriteLock("a").Read(), p.client.NewFairLock("a")},
			[]string{`"a" as two kinds`}},
		"write, read and fenced": {[]rlock.Locker{p.client.NewReadWriteLock("a").Write(),
			p.client.NewFencedLock("a"), p.client.NewReadWriteLock("a").Read()},
			[]string{`"a" as two kinds`}},
	} {
		t.Run(name, func(t *testing.T) { requireInvalid(t, multilock.New(c.locks...), c.texts...) })
	}
	require.Empty(t, first.Commands(t))
	require.Empty(t, second.Commands(t))

	// Equal names on two servers are different locks.
	unlock(t, take(t, multilock.New(p.client.NewLock("a"), p.another.NewFairLock("a")), longLease))
}

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

func TestImpossibleWaitsAndLeasesAreRefused(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, lock := range map[string]*multilock.Lock{
		"batch":       multilock.New(p.client.NewLock("a"), p.client.NewLock("b")),
		"one by one":  multilock.New(p.client.NewFairLock("a"), p.another.NewFairLock("b")),
		"empty names": multilock.New(p.client.NewLock("a"), p.client.NewLock("")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock.TryLock(t.Context(), -time.Second, longLease)
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, "the wait -1s is negative")
			for _, lease := range []time.Duration{time.Millisecond, 2 * time.Millisecond} {
				_, err = lock.TryLock(t.Context(), longWait, lease)
				require.ErrorIs(t, err, rlock.ErrInvalid)
				if name != "empty names" {
					require.ErrorContains(t, err, "want at least 3ms")
				}
				_, err = lock.Lock(t.Context(), lease)
				require.ErrorIs(t, err, rlock.ErrInvalid)
			}
			if name == "empty names" {
				_, err := lock.Lock(t.Context(), longLease)
				require.ErrorIs(t, err, rlock.ErrInvalid)
				require.ErrorContains(t, err, "the name is empty")
			}
			requireFree(t, p.first, p.second)
		})
	}
}
