package suite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Inspection: Info, IsLocked, IsHeld, HoldCount and TTL say what Redis has, and change nothing.
var inspection = []Promise{
	{
		Name: "a free lock shows nothing but its name, and the last token of a fenced one",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock").(*rlock.Lock)
			require.Equal(t, rlock.Info{Name: "lock"}, infoOf(t, lock))
			requireSeenByOthers(t, lock, false)
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			locktest.Unlock(t, hold)
			require.Equal(t, rlock.Info{Name: "lock", Token: hold.Token()}, infoOf(t, lock))
			requireSeenByOthers(t, lock, false)
		},
	},
	{
		Name: "a held lock shows its owner, its levels and its lease to all clients",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock").(*rlock.Lock)
			elsewhere := k.New(e.Party(t), "lock").(*rlock.Lock)
			hold, levels := locktest.Acquire(t, lock, rlock.Lease(30*time.Second)), 1
			if !k.Flat {
				locktest.AcquireWith(hold.Context(), t, lock, rlock.Lease(30*time.Second))
				levels = 2
			}
			want := rlock.Info{Name: "lock", Locked: true, Owner: hold.Owner(), Count: levels,
				Mode: modeOf(k), Token: hold.Token()}
			if k.Shared {
				want.Readers = map[string]int{hold.Owner(): levels}
			}
			for _, l := range []*rlock.Lock{lock, elsewhere} {
				info := infoOf(t, l)
				require.InDelta(t, 30*time.Second, info.TTL, float64(5*time.Second))
				info.TTL = 0
				require.Equal(t, want, info)
				requireSeenByOthers(t, l, true)
				count, err := l.HoldCount(hold.Context())
				require.NoError(t, err)
				held, err := l.IsHeld(hold.Context())
				require.NoError(t, err)
				require.Equal(t, l == lock, held, "an owner of one client is none of another")
				require.Equal(t, l == lock, count == levels)
			}
		},
	},
	{
		Name: "a lock that never expires shows NoExpiry",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.Contender(e.Party(t), "lock").(*rlock.Lock)
			e.plant(t, k, "lock", "another:7")
			info := infoOf(t, lock)
			require.Equal(t, rlock.NoExpiry, info.TTL)
			require.Equal(t, "another:7", info.Owner)
			ttl, err := lock.TTL(t.Context())
			require.NoError(t, err)
			require.Equal(t, rlock.NoExpiry, ttl)
		},
	},
	{
		Name: "a waiter is shown the holder, and only the queue of a fair lock has the waiter",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			contender, lock := k.Contender(p, "lock").(*rlock.Lock), k.New(p, "lock").(*rlock.Lock)
			hold := locktest.Acquire(t, contender, rlock.Watchdog)
			waiter := e.waiter(t.Context(), t, lock)
			info := infoOf(t, contender)
			require.Equal(t, hold.Owner(), info.Owner)
			require.Equal(t, 1, info.Count)
			locktest.Unlock(t, hold)
			next := locktest.Acquired(t, waiter)
			if isFair(k) {
				require.Equal(t, []string{next.Owner()}, info.Queue)
			} else {
				require.Nil(t, info.Queue)
			}
			info = infoOf(t, lock)
			require.Equal(t, next.Owner(), info.Owner)
			require.Empty(t, info.Queue)
			locktest.Unlock(t, next)
		},
	},
	{
		Name:  "inspecting a lock changes neither its lease nor its holders",
		Kept:  ofOneClient,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t, anonymous), "lock").(*rlock.Lock)
			hold := locktest.Acquire(t, lock, rlock.Lease(30*time.Second))
			before := e.dump(t)
			for _, inspect := range [...]func() error{
				func() error { _, err := lock.Info(hold.Context()); return err },
				func() error { _, err := lock.HoldCount(hold.Context()); return err },
				func() error { _, err := lock.IsHeld(hold.Context()); return err },
				func() error { _, err := lock.IsLocked(t.Context()); return err },
				func() error { _, err := lock.TTL(t.Context()); return err },
			} {
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, inspect())
			}
			require.Equal(t, before, e.dump(t))
		},
	},
}

// infoOf returns what a lock shows. An empty queue counts as none.
func infoOf(t *testing.T, l *rlock.Lock) rlock.Info {
	t.Helper()
	info, err := l.Info(t.Context())
	require.NoError(t, err)
	if len(info.Queue) == 0 {
		info.Queue = nil
	}
	return info
}

// requireSeenByOthers requires what a lock shows to those that do not hold it.
func requireSeenByOthers(t *testing.T, l *rlock.Lock, locked bool) {
	t.Helper()
	is, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.Equal(t, locked, is)
	ttl, err := l.TTL(t.Context())
	require.NoError(t, err)
	require.Equal(t, locked, ttl > 0)
	for _, ctx := range []context.Context{t.Context(), rlock.WithOwner(t.Context())} {
		count, err := l.HoldCount(ctx)
		require.NoError(t, err)
		require.Zero(t, count)
		held, err := l.IsHeld(ctx)
		require.NoError(t, err)
		require.False(t, held)
	}
}

// dump returns each key of the servers with its value, if it is a hash, and when it expires.
func (e *Env) dump(t *testing.T) (all []string) {
	t.Helper()
	for _, server := range e.Servers {
		for _, key := range server.Keys(t) {
			var fields any
			if server.Do(t, "TYPE", key) == "hash" {
				fields = server.Do(t, "HGETALL", key)
			}
			var expires time.Time
			if left := server.Do(t, "PTTL", key).(int64); left > 0 {
				expires = time.Now().Add(time.Duration(left) * time.Millisecond)
			}
			all = append(all, fmt.Sprintf("%s %v %v", key, fields, expires))
		}
	}
	slices.Sort(all)
	return all
}

// modeOf returns what Info says of the mode of a lock.
func modeOf(k Kind) string {
	switch k.Name {
	case "read", "write":
		return k.Name
	case "write-behind-readers":
		return "write"
	}
	return ""
}
