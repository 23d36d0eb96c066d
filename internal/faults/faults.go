// Package faults is the table of what can happen to a server that has a lock, and to the network
// before it: how a fault begins, how it ends, and what an attempt to acquire the lock sees
// meanwhile. The tests of every lock use it. rlock has one such server; redlock has several, and
// one of them fails.
package faults

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// Effect is what an attempt without wait sees of a server while a fault lasts.
type Effect int

const (
	// Nothing is wrong: the lock is acquired, though some commands may have to be retried.
	Nothing Effect = iota
	// NoReply leaves the outcome unknown, or the server is out of reach. A wait outlasts it.
	NoReply
	// ForNow is a refusal that a wait outlasts.
	ForNow
	// ForGood is a refusal that does not pass, as far as anyone can know. No caller waits for its
	// end.
	ForGood
	// Held reports another owner's lock.
	Held
)

// Fault is something that may happen to a server.
type Fault struct {
	// Effect is what an attempt sees meanwhile.
	Effect Effect
	// Code is the code of the refusal, if the server refuses.
	Code string
	// LosesLock reports whether the server has lost the holder's lock once the fault has begun.
	LosesLock bool
	// KeepsLocks reports whether it refuses releases as well, for good: its locks end with their
	// leases.
	KeepsLocks bool
	// Options are the options of the server to which it happens.
	Options []redistest.Option

	begin, end func(t testing.TB, v *Victim)
}

// Begin causes the fault, and returns when it has begun. It lasts until End. Both are called by the
// goroutine of the test.
func (f Fault) Begin(t testing.TB, v *Victim) {
	t.Helper()
	f.begin(t, v)
}

// End ends the fault. Some faults have ended by themselves.
func (f Fault) End(t testing.TB, v *Victim) {
	t.Helper()
	if f.end != nil {
		f.end(t, v)
	}
}

// Victim is the server to which a fault happens.
type Victim struct {
	Server *redistest.Server
	Proxy  *faultproxy.Proxy // between the server and the users of the lock
	Lock   string            // the name of the lock
	// ForceUnlock unlocks the lock by force, as the client of its users can.
	ForceUnlock func(t testing.TB)

	under sync.WaitGroup // what runs in the background until the fault ends
	stop  chan struct{}
}

// during runs f repeatedly until over.
func (v *Victim) during(f func()) {
	v.stop = make(chan struct{})
	v.under.Go(func() {
		for n := 0; ; n++ {
			f()
			select {
			// At times this is enough to connect and ask, on a busy machine as well.
			case <-time.After(5 * time.Millisecond << (n % 8)):
			case <-v.stop:
				return
			}
		}
	})
}

func over(_ testing.TB, v *Victim) {
	close(v.stop)
	v.under.Wait()
}

// Named returns a fault of All.
func Named(t testing.TB, name string) Fault {
	t.Helper()
	f, known := table[name]
	require.True(t, known, name)
	return f
}

// All returns all faults, by what happens to the server.
func All() map[string]Fault {
	all := make(map[string]Fault, len(table))
	for name, f := range table {
		all[name] = f
	}
	return all
}

// LosesReplies returns the fault that loses the next replies to requests that contain one of the
// patterns, with their connections.
func LosesReplies(patterns ...string) Fault {
	return Fault{begin: func(_ testing.TB, v *Victim) {
		for _, pattern := range patterns {
			v.Proxy.CutReply(pattern, 3)
		}
	}}
}

// setting changes a setting of the server, and changes it back at the end.
func setting(f Fault, name, during, otherwise string) Fault {
	f.begin = func(t testing.TB, v *Victim) { v.Server.Do(t, "CONFIG", "SET", name, during) }
	f.end = func(t testing.TB, v *Victim) { v.Server.Do(t, "CONFIG", "SET", name, otherwise) }
	return f
}

// command executes one command on the server, and another one at the end.
func command(f Fault, begin, end []string) Fault {
	f.begin = func(t testing.TB, v *Victim) { v.Server.Do(t, begin...) }
	f.end = func(t testing.TB, v *Victim) { v.Server.Do(t, end...) }
	return f
}

func words(command ...string) []string { return command }

// refuses waits until the server refuses a command with a code.
func refuses(t testing.TB, v *Victim, code string, command ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := v.Server.Call(command...)
		return err != nil && strings.HasPrefix(err.Error(), code)
	}, 10*time.Second, time.Millisecond, "the server does not reply "+code)
}

var table = map[string]Fault{
	"hangs": {
		Effect: NoReply,
		begin:  func(t testing.TB, v *Victim) { v.Server.Pause(t) },
		end:    func(t testing.TB, v *Victim) { v.Server.Resume(t) },
	},
	"is down and comes back empty": {
		Effect:    NoReply,
		LosesLock: true,
		begin:     func(t testing.TB, v *Victim) { v.Server.Kill(t) },
		end:       func(t testing.TB, v *Victim) { v.Server.Restart(t) },
	},
	"restarts empty": {
		LosesLock: true,
		begin:     func(t testing.TB, v *Victim) { v.Server.Restart(t) },
	},
	"is emptied": {
		LosesLock: true,
		begin:     func(t testing.TB, v *Victim) { v.Server.Do(t, "FLUSHALL") },
	},
	"is black-holed": {
		Effect: NoReply,
		begin:  func(_ testing.TB, v *Victim) { v.Proxy.BlackHole() },
		end:    func(_ testing.TB, v *Victim) { v.Proxy.Reset(); v.Proxy.Pass() },
	},
	"replies nothing": {
		Effect: NoReply,
		begin:  func(_ testing.TB, v *Victim) { v.Proxy.HoldReplies() },
		end:    func(_ testing.TB, v *Victim) { v.Proxy.Pass() },
	},
	"executes, and the replies are lost": {
		Effect: NoReply,
		begin:  func(_ testing.TB, v *Victim) { v.Proxy.HoldReplies() },
		end:    func(_ testing.TB, v *Victim) { v.Proxy.Reset(); v.Proxy.Pass() },
	},
	"refuses connections": {
		Effect: NoReply,
		begin:  func(_ testing.TB, v *Victim) { v.Proxy.Refuse(); v.Proxy.Reset() },
		end:    func(t testing.TB, v *Victim) { require.NoError(t, v.Proxy.Accept()) },
	},
	"breaks connections again and again": {
		begin: func(_ testing.TB, v *Victim) { v.during(func() { v.Proxy.Reset() }) },
		end:   over,
	},
	"kills connections again and again": {
		begin: func(_ testing.TB, v *Victim) {
			v.during(func() {
				_, _ = v.Server.Call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			})
		},
		end: over,
	},
	"forgets scripts again and again": {
		begin: func(_ testing.TB, v *Victim) {
			v.during(func() { _, _ = v.Server.Call("SCRIPT", "FLUSH") })
		},
		end: over,
	},
	"is slow": {
		begin: func(_ testing.TB, v *Victim) { v.Proxy.Delay(100 * time.Millisecond) },
		end:   func(_ testing.TB, v *Victim) { v.Proxy.Delay(0) },
	},
	"is out of memory": setting(Fault{Effect: ForGood, Code: "OOM"}, "maxmemory", "1", "0"),
	"lacks replicas": setting(Fault{Effect: ForNow, Code: "NOREPLICAS"},
		"min-replicas-to-write", "1", "0"),
	"has become a replica": command(Fault{Effect: ForNow, Code: "READONLY"},
		words("REPLICAOF", "127.0.0.1", "1"), // no server listens there
		words("REPLICAOF", "NO", "ONE")),
	"forbids scripts": command(Fault{Effect: ForGood, Code: "NOPERM", KeepsLocks: true},
		words("ACL", "SETUSER", "default", "-@scripting"),
		words("ACL", "SETUSER", "default", "+@all")),
	"cannot save": {
		Effect:     ForGood,
		Code:       "MISCONF",
		KeepsLocks: true,
		// No file can have this name: a snapshot is written but cannot be renamed to it. Without an
		// append-only file the server would not start, because it could not look for a snapshot
		// either.
		Options: []redistest.Option{redistest.WithAppendOnly(),
			redistest.WithArgs("--dbfilename", strings.Repeat("x", 256), "--save", "3600", "1")},
		begin: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
			_, _ = v.Server.Call("BGSAVE") // fails if one is under way
			refuses(t, v, "MISCONF", "SET", "unsaved", "1")
		},
		end: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
			v.Server.Do(t, "DEL", "unsaved")
		},
	},
	"is busy": {
		Effect: ForNow,
		Code:   "BUSY",
		begin: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "CONFIG", "SET", "lua-time-limit", "1")
			v.under.Go(func() { _, _ = v.Server.Call("EVAL", "while true do end", "0") })
			refuses(t, v, "BUSY", "PING")
		},
		end: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "SCRIPT", "KILL")
			v.under.Wait()
		},
	},
	"loads its data": {
		Effect: ForNow,
		Code:   "LOADING",
		// Before Redis 7 a server that loads checks its connections only every 2 MB, which cannot
		// be changed. Loading the data takes it some seconds.
		Options: []redistest.Option{redistest.WithArgs("--enable-debug-command", "yes",
			"--rdbcompression", "no", "--key-load-delay", "10000",
			"--loading-process-events-interval-bytes", "1024")},
		begin: func(t testing.TB, v *Victim) {
			for i := range 250 {
				v.Server.Do(t, "SET", "filler:"+strconv.Itoa(i), strings.Repeat("x", 1000))
			}
			v.under.Go(func() { _, _ = v.Server.Call("DEBUG", "RELOAD") })
			refuses(t, v, "LOADING", "EXISTS", v.Lock)
		},
		end: func(t testing.TB, v *Victim) {
			v.under.Wait()
			for i := range 250 {
				v.Server.Do(t, "DEL", "filler:"+strconv.Itoa(i))
			}
		},
	},
	"has another's lock": {
		Effect:    Held,
		LosesLock: true,
		begin: func(t testing.TB, v *Victim) {
			const swap = "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], 'another', 1)"
			v.Server.Do(t, "EVAL", swap, "1", v.Lock)
		},
		end: func(t testing.TB, v *Victim) { v.Server.Do(t, "HDEL", v.Lock, "another") },
	},
	"has something else there": {
		Effect:    ForGood,
		Code:      "WRONGTYPE",
		LosesLock: true,
		begin:     func(t testing.TB, v *Victim) { v.Server.Do(t, "SET", v.Lock, "precious") },
		end:       func(t testing.TB, v *Victim) { v.Server.Do(t, "DEL", v.Lock) },
	},
	"is force-unlocked": {
		LosesLock: true,
		begin:     func(t testing.TB, v *Victim) { v.ForceUnlock(t) },
	},
	"lets it expire": {
		LosesLock: true,
		begin: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "PEXPIRE", v.Lock, "1")
			<-time.After(5 * time.Millisecond)
		},
	},
}
