//go:build redis

package redlock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// nodeFaults returns those that may happen to a server that has a lock, and a few that are special
// to a node.
func nodeFaults() map[string]faults.Fault {
	script := func(file string) string { // what identifies a call on the network
		sum := sha1.Sum([]byte(locktest.Scripts()[file]))
		return hex.EncodeToString(sum[:])
	}
	all := faults.All()
	all["loses replies to acquisitions"] = faults.LosesReplies(script("quorum_acquire.lua"))
	all["loses replies to renewals"] = faults.LosesReplies(script("renew.lua"))
	all["loses replies to releases"] = faults.LosesReplies(script("release_only.lua"),
		script("release.lua"))
	return all
}

// Whatever happens to one node of five, the lock can be acquired, is held without a gap, excludes
// others, and can be released. When the node is well again nothing stays on it for longer than a
// lease.
func TestFaultOfOneNodeChangesNothingForTheHolder(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	for what, f := range nodeFaults() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartAll(t, 5, f.Options...)
			clients, proxies := proxied(t, servers, rlock.Options{WatchdogLease: lease})
			lock := redlock.NewOn(name, hasty, clients...)
			other := redlock.NewOn(name, hasty, newClients(t, servers, rlock.Options{})...)
			v := &faults.Victim{Server: servers[1], Proxy: proxies[1], Lock: name}
			v.ForceUnlock = func(t testing.TB) {
				_, err := clients[1].NewLock(name).ForceUnlock(t.Context())
				require.NoError(t, err)
			}
			excluded := func(hold *rlock.Hold) {
				t.Helper()
				require.True(t, hold.Valid(), "%v", hold.Err())
				_, err := other.TryLock(t.Context(), rlock.NoWait, rlock.Lease(lease))
				require.Error(t, err)
			}

			f.Begin(t, v)
			hold := acquired(t, lockInBackground(t.Context(), lock, rlock.Watchdog))
			excluded(hold)
			unlock(t, hold)
			f.End(t, v)
			waitUntilFree(t, servers...)

			hold = takeOnAll(t, lock, servers, rlock.Watchdog)
			f.Begin(t, v)
			before := hold.Deadline()
			eventually(t, func() bool {
				return hold.Err() != nil || hold.Deadline().After(before.Add(lease/2))
			}, "it is renewed")
			excluded(hold)
			f.End(t, v)
			eventually(t, func() bool {
				return lock.Parts(hold) == len(servers) && count(servers) == len(servers)
			}, "the node has joined again")
			unlock(t, hold)
			waitUntilFree(t, servers...)

			last := longLease
			if f.KeepsLocks {
				last = rlock.Lease(lease)
			}
			hold = takeOnAll(t, lock, servers, last)
			f.Begin(t, v)
			unlock(t, hold)
			f.End(t, v)
			waitUntilFree(t, servers...)
		})
	}
}
