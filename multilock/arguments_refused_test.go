package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
