package redlock_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// victim is the node to which something happens.
type victim struct {
	server *redistest.Server
	proxy  *faultproxy.Proxy // between it and the holder
	client *rlock.Client     // the holder's
	ended  sync.WaitGroup    // what goes on in the background until the fault ends
	stop   chan struct{}
}

// during runs f again and again until the fault ends.
func (v *victim) during(f func()) {
	v.stop = make(chan struct{})
	v.ended.Go(func() {
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for {
			f()
			select {
			case <-again.C:
			case <-v.stop:
				return
			}
		}
	})
}

func (v *victim) over() {
	close(v.stop)
	v.ended.Wait()
}

// fault is something that may happen to a single lock as well, where it may keep or cost its owner the lock.
type fault struct {
	begin func(t *testing.T, v *victim)
	end   func(t *testing.T, v *victim)
	// refuses: the node refuses for good as far as anybody can know, so what it has ends with the lease.
	refuses bool
}

func nothing(*testing.T, *victim) {}

// setting changes a setting of the node, and changes it back.
func setting(name, during, otherwise string) fault {
	return fault{
		begin: func(t *testing.T, v *victim) { v.server.Do(t, "CONFIG", "SET", name, during) },
		end:   func(t *testing.T, v *victim) { v.server.Do(t, "CONFIG", "SET", name, otherwise) },
	}
}

// lostReply loses the next replies to a script.
func lostReply(file string) fault {
	return fault{begin: func(_ *testing.T, v *victim) { v.proxy.CutReply(script(file), 3) }, end: nothing}
}

// faults are those of the tests of a lock on one server.
var faults = map[string]fault{
	"hangs": {
		begin: func(t *testing.T, v *victim) { v.server.Pause(t) },
		end:   func(t *testing.T, v *victim) { v.server.Resume(t) },
	},
	"is down and comes back empty": {
		begin: func(t *testing.T, v *victim) { v.server.Kill(t) },
		end:   func(t *testing.T, v *victim) { v.server.Restart(t) },
	},
	"restarts empty": {begin: func(t *testing.T, v *victim) { v.server.Restart(t) }, end: nothing},
	"is emptied":     {begin: func(t *testing.T, v *victim) { v.server.Do(t, "FLUSHALL") }, end: nothing},
	"is black-holed": {
		begin: func(_ *testing.T, v *victim) { v.proxy.BlackHole() },
		end:   func(_ *testing.T, v *victim) { v.proxy.Reset(); v.proxy.Pass() },
	},
	"answers nothing": {
		begin: func(_ *testing.T, v *victim) { v.proxy.HoldReplies() },
		end:   func(_ *testing.T, v *victim) { v.proxy.Pass() },
	},
	"executes, and the replies are lost": {
		begin: func(_ *testing.T, v *victim) { v.proxy.HoldReplies() },
		end:   func(_ *testing.T, v *victim) { v.proxy.Reset(); v.proxy.Pass() },
	},
	"refuses connections": {
		begin: func(_ *testing.T, v *victim) { v.proxy.Refuse(); v.proxy.Reset() },
		end:   func(t *testing.T, v *victim) { require.NoError(t, v.proxy.Accept()) },
	},
	"breaks connections again and again": {
		begin: func(_ *testing.T, v *victim) { v.during(func() { v.proxy.Reset() }) },
		end:   func(_ *testing.T, v *victim) { v.over() },
	},
	"kills connections again and again": {
		begin: func(_ *testing.T, v *victim) {
			v.during(func() { _, _ = v.server.Call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
		},
		end: func(_ *testing.T, v *victim) { v.over() },
	},
	"forgets scripts again and again": {
		begin: func(_ *testing.T, v *victim) { v.during(func() { _, _ = v.server.Call("SCRIPT", "FLUSH") }) },
		end:   func(_ *testing.T, v *victim) { v.over() },
	},
	"is slow": {
		begin: func(_ *testing.T, v *victim) { v.proxy.Delay(100 * time.Millisecond) },
		end:   func(_ *testing.T, v *victim) { v.proxy.Delay(0) },
	},
	"loses replies to acquisitions": lostReply("quorum_acquire.lua"),
	"loses replies to renewals":     lostReply("renew.lua"),
	"loses replies to releases":     lostReply("release.lua"),
	"is out of memory":              setting("maxmemory", "1", "0"),
	"lacks replicas":                setting("min-replicas-to-write", "1", "0"),
	"has become a replica": {
		begin:   func(t *testing.T, v *victim) { v.server.Do(t, "REPLICAOF", "127.0.0.1", "1") }, // nobody listens there
		end:     func(t *testing.T, v *victim) { v.server.Do(t, "REPLICAOF", "NO", "ONE") },
		refuses: true,
	},
	"forbids scripts": {
		begin:   func(t *testing.T, v *victim) { v.server.Do(t, "ACL", "SETUSER", "default", "-@scripting") },
		end:     func(t *testing.T, v *victim) { v.server.Do(t, "ACL", "SETUSER", "default", "+@all") },
		refuses: true,
	},
	"is busy": {
		begin: func(t *testing.T, v *victim) {
			v.server.Do(t, "CONFIG", "SET", "lua-time-limit", "1")
			v.ended.Go(func() { _, _ = v.server.Call("EVAL", "while true do end", "0") })
			eventually(t, func() bool {
				_, err := v.server.Call("PING")
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			}, "the server is busy")
		},
		end: func(t *testing.T, v *victim) {
			v.server.Do(t, "SCRIPT", "KILL")
			v.ended.Wait()
		},
	},
	"has another's lock": {
		begin: func(t *testing.T, v *victim) { takenAway(t, v.server) },
		end:   func(t *testing.T, v *victim) { v.server.Do(t, "HDEL", name, "somebody") },
	},
	"has something else there": {
		begin: func(t *testing.T, v *victim) { v.server.Do(t, "SET", name, "precious") },
		end:   func(t *testing.T, v *victim) { v.server.Do(t, "DEL", name) },
	},
	"lets it expire": {
		begin: func(t *testing.T, v *victim) { v.server.Do(t, "PEXPIRE", name, "1") },
		end:   nothing,
	},
	"is force-unlocked": {
		begin: func(t *testing.T, v *victim) {
			_, err := v.client.NewLock(name).ForceUnlock(t.Context())
			require.NoError(t, err)
		},
		end: nothing,
	},
}

// Whatever happens to one node of five: the lock can be taken, is held without interruption, excludes others, can be
// released, and when the node is well again nothing is left on it for longer than a lease.
func TestFaultOfOneNodeChangesNothingForTheHolder(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	for what, f := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{WatchdogLease: lease})
			lock := redlock.NewOn(name, redlock.Options{FsyncAlways: true, NodeTimeout: 250 * time.Millisecond}, clients...)
			other := redlock.NewOn(name, hasty, newClients(t, servers, rlock.Options{})...)
			warm(t, clients)
			v := &victim{server: servers[1], proxy: proxies[1], client: clients[1]}
			excluded := func(hold *rlock.Hold) {
				t.Helper()
				require.True(t, hold.Valid(), "%v", hold.Err())
				_, err := other.TryLock(t.Context(), rlock.NoWait, lease)
				require.Error(t, err)
			}

			f.begin(t, v)
			hold, err := lock.TryLock(t.Context(), patience, rlock.Watchdog)
			require.NoError(t, err, "acquired meanwhile")
			excluded(hold)
			unlock(t, hold)
			f.end(t, v)
			awaitFree(t, servers...)

			hold = acquired(t, lockInBackground(t.Context(), lock, rlock.Watchdog))
			awaitHeld(t, servers)
			f.begin(t, v)
			before := hold.Deadline()
			eventually(t, func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease/2)) }, "it is renewed")
			excluded(hold)
			f.end(t, v)
			eventually(t, func() bool { return lock.Parts(hold) == len(servers) && count(servers) == len(servers) },
				"the node has joined again")
			unlock(t, hold)
			awaitFree(t, servers...)

			last := longLease
			if f.refuses {
				last = lease
			}
			hold = takeOnAll(t, lock, servers, last)
			f.begin(t, v)
			unlock(t, hold)
			f.end(t, v)
			awaitFree(t, servers...)
		})
	}
}
