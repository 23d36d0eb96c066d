package rlock_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// kind is what a test must know of a kind of lock, so that one test serves all kinds.
type kind struct {
	name string
	// lock makes the lock.
	lock func(c *rlock.Client, name string) *rlock.Lock
	// contender makes the lock that keeps another owner out of this one: usually the same, for the
	// read lock the write lock.
	contender func(c *rlock.Client, name string) *rlock.Lock
	// shared is set when any number of owners may hold it at once.
	shared bool
	// lonely is set when each waiter has its own registration in Redis and its own channel, instead
	// of a local queue.
	lonely bool
	// withdraws is set when a waiter that leaves removes something from Redis.
	withdraws bool
	// handsOver is set when a release may hand the lock over within the process, grants when it may
	// grant it to any waiter of this library.
	handsOver, grants bool
	// fenced is set when holds have a token.
	fenced bool
	// mode is the mode in the hash of the lock while it is held, or "".
	mode string
	// contenderMode is mode while the contender is held.
	contenderMode string
	// channel is the prefix of the lock's channels, before its name in braces.
	channel string
	// The files of the scripts.
	acquire, reenter, release, forceUnlock, inspect, renew string
	// release of one level, if it is not release
	lower string
}

// kinds has the kinds of locks that nest. Each of them can do what the reentrant lock can.
var kinds = []kind{
	{
		name: "reentrant", lock: (*rlock.Client).NewLock, contender: (*rlock.Client).NewLock,
		channel: "redisson_lock__channel", handsOver: true, grants: true,
		acquire: "acquire.lua", reenter: "reenter.lua",
		release: "release.lua", lower: "release_only.lua", forceUnlock: "force_unlock.lua",
		inspect: "inspect.lua", renew: "renew.lua",
	},
	{
		name: "fair", lock: (*rlock.Client).NewFairLock, contender: (*rlock.Client).NewFairLock,
		channel: "redisson_lock__channel", lonely: true, withdraws: true,
		acquire: "fair_acquire.lua", reenter: "reenter.lua", release: "fair_release.lua",
		forceUnlock: "fair_force_unlock.lua", inspect: "fair_inspect.lua", renew: "renew.lua",
	},
	{
		name: "read", lock: newReadLock, contender: newWriteLock, channel: "redisson_rwlock",
		shared: true, mode: "read", contenderMode: "write",
		acquire: "read_acquire.lua", reenter: "read_reenter.lua", release: "read_release.lua",
		forceUnlock: "readwrite_force_unlock.lua", inspect: "inspect.lua", renew: "read_renew.lua",
	},
	{
		name: "write", lock: newWriteLock, contender: newWriteLock, channel: "redisson_rwlock",
		withdraws: true, handsOver: true, mode: "write", contenderMode: "write",
		acquire: "write_acquire.lua", reenter: "reenter.lua", release: "write_release.lua",
		forceUnlock: "readwrite_force_unlock.lua", inspect: "inspect.lua", renew: "renew.lua",
	},
	{
		name: "fenced", lock: (*rlock.Client).NewFencedLock, contender: (*rlock.Client).NewFencedLock,
		channel: "redisson_lock__channel", handsOver: true, grants: true, fenced: true,
		acquire: "fenced_acquire.lua", reenter: "reenter.lua", release: "release.lua",
		lower: "release_only.lua", forceUnlock: "force_unlock.lua", inspect: "fenced_inspect.lua",
		renew: "renew.lua",
	},
}

// nonReentrant has the kinds of locks that do not nest. They have the scripts of those that do.
func nonReentrant() []kind {
	plain, fair := kindNamed("reentrant"), kindNamed("fair")
	plain.name, fair.name = "nonreentrant", "nonreentrant-fair"
	plain.lock, plain.contender = newNonReentrantLock, newNonReentrantLock
	fair.lock, fair.contender = newNonReentrantFairLock, newNonReentrantFairLock
	return []kind{plain, fair}
}

var (
	newNonReentrantLock     = (*rlock.Client).NewNonReentrantLock
	newNonReentrantFairLock = (*rlock.Client).NewNonReentrantFairLock
)

func newReadLock(c *rlock.Client, name string) *rlock.Lock {
	return c.NewReadWriteLock(name).Read()
}

func newWriteLock(c *rlock.Client, name string) *rlock.Lock {
	return c.NewReadWriteLock(name).Write()
}

// onEveryKind runs a test for each kind of lock, one after another unless the test calls
// t.Parallel. Tests that share a server name their locks after the kind, so that they do not meet.
func onEveryKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// withoutNesting is onEveryKind for a test that never nests: also for the kinds that cannot.
func withoutNesting(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	onEveryKind(t, test)
	for _, k := range nonReentrant() {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// contests returns the kinds for tests in which a waiter waits for the contender: writers wait for
// writers, and for readers as well.
func contests() []kind {
	behind := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == "write" })]
	behind.name = "write behind readers"
	behind.contender, behind.contenderMode = newReadLock, "read"
	return append(slices.Clip(kinds), behind)
}

// onEveryContest is onEveryKind for each of contests.
func onEveryContest(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range contests() {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// kindNamed returns the kind of that name, for test processes.
func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

func fieldIn(mode, owner string) string {
	if mode == "write" {
		return owner + ":write"
	}
	return owner
}

// hash returns the hash of the lock when an owner holds that many levels.
func (k kind) hash(owner string, levels int) map[string]string {
	return hashIn(k.mode, owner, levels)
}

func hashIn(mode, owner string, levels int) map[string]string {
	hash := map[string]string{fieldIn(mode, owner): strconv.Itoa(levels)}
	if mode != "" {
		hash["mode"] = mode
	}
	return hash
}

// waitForListeners waits until exactly n listen on the channels of a lock whose name has no braces:
// waiters of a fair lock, connections of others.
func (k kind) waitForListeners(t testing.TB, s *redistest.Server, name string, n int) {
	t.Helper()
	eventually(t, func() bool { return k.listeners(s, name) == n },
		strconv.Itoa(n)+" listeners for "+name)
}

// listeners returns how many listen on the channels of a lock, or -1 if the server does not reply.
// Any goroutine may call it.
func (k kind) listeners(s *redistest.Server, name string) int {
	reply, err := s.Call("PUBSUB", "CHANNELS", k.channel+":{"+name+"}*")
	if err != nil {
		return -1
	}
	channels, _ := reply.([]any)
	total := 0
	for _, channel := range channels {
		reply, err := s.Call("PUBSUB", "NUMSUB", channel.(string))
		if err != nil {
			return -1
		}
		n, _ := reply.([]any)[1].(int64)
		total += int(n)
	}
	return total
}

// whatLasts has the prefixes of keys that outlast a lock by design: a fenced lock's counter stays
// for ever, this library's own keys stay for some seconds.
var whatLasts = []string{"redisson_lock_token:", "holdfast_rwlock_"}

// left returns the keys of a server by which any lock, or a named one, is held or queued for; nil
// and false if the server does not reply. Any goroutine may call it.
func left(s *redistest.Server, names ...string) (keys []string, ok bool) {
	all, err := s.CallKeys()
	if err != nil {
		return nil, false
	}
	for _, key := range all {
		lasts := slices.ContainsFunc(whatLasts,
			func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		concerns := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
			return key == name || strings.Contains(key, "{"+name+"}")
		})
		if concerns && !lasts {
			keys = append(keys, key)
		}
	}
	return keys, true
}

// requireFree requires that the server has nothing left of a hold of the lock, or of a waiter.
func requireFree(t testing.TB, s *redistest.Server, name string) {
	t.Helper()
	keys, ok := left(s, name)
	require.True(t, ok, "the server does not reply")
	require.Empty(t, keys)
}

// waitUntilFree waits until requireFree would pass.
func waitUntilFree(t testing.TB, s *redistest.Server, name string) {
	t.Helper()
	eventually(t, func() bool {
		keys, ok := left(s, name)
		return ok && len(keys) == 0
	}, name+" is free")
}

// waitForNothingLeft waits until the server has no hold, no waiter and no channel left of any lock.
func waitForNothingLeft(t testing.TB, s *redistest.Server) {
	t.Helper()
	eventually(t, func() bool {
		keys, ok := left(s)
		return ok && len(keys) == 0
	}, "a key is left")
	eventually(t, func() bool {
		channels, err := s.Call("PUBSUB", "CHANNELS")
		list, _ := channels.([]any)
		return err == nil && len(list) == 0
	}, "a channel is left")
}
