// Package faults is the table of what can happen to a server that has a lock, and to the network
// before it: how it is brought about, how it ends, and what somebody who asks for a lock must be
// told meanwhile. The tests of every lock take it from here: rlock has one such server, redlock
// several, to one of which it happens.
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

// Told is what somebody must be told who asks a server for a lock while a fault lasts, and does
// not wait.
type Told int

const (
	// Nothing is wrong: the lock is had, though some commands may have to be repeated.
	Nothing Told = iota
	// NoAnswer leaves the outcome unknown, or the server is out of reach. A wait outlasts it.
	NoAnswer
	// ForNow is a refusal that a wait outlasts.
	ForNow
	// ForGood is a refusal that, as far as anybody can know, does not pass. Nobody waits.
	ForGood
	// Held reports whether somebody else has the lock.
	Held
)

// Fault is something that may happen to a server.
type Fault struct {
	// Told is what somebody must be told who asks for a lock meanwhile.
	Told Told
	// Code is that of the refusal, if the server refuses.
	Code string
	// Takes reports whether the server no longer knows who had the lock when the fault began.
	Takes bool
	// KeepsLocks reports whether it refuses releases as well, for good: what it has ends with its lease.
	KeepsLocks bool
	// Options are those of the server to which it happens.
	Options []redistest.Option

	begin, end func(t testing.TB, v *Victim)
}

// Begin has the fault happen, and returns when it has. It lasts until End. Both are called by the
// goroutine of the test.
func (f Fault) Begin(t testing.TB, v *Victim) {
	t.Helper()
	f.begin(t, v)
}

// End ends the fault. Some have ended by themselves.
func (f Fault) End(t testing.TB, v *Victim) {
	t.Helper()
	if f.end != nil {
		f.end(t, v)
	}
}

// Victim is the server to which something happens.
type Victim struct {
	Server *redistest.Server
	Proxy  *faultproxy.Proxy // between it and those who use the lock
	Lock   string            // the name of the lock in question
	// ForceUnlock unlocks it by force, as the client of those who use it can.
	ForceUnlock func(t testing.TB)

	under sync.WaitGroup // what goes on in the background until the fault ends
	stop  chan struct{}
}

// during runs f again and again until over.
func (v *Victim) during(f func()) {
	v.stop = make(chan struct{})
	v.under.Go(func() {
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

// Telling returns those of which somebody must be told the given.
func Telling(told Told) map[string]Fault {
	all := All()
	for name, f := range all {
		if f.Told != told {
			delete(all, name)
		}
	}
	return all
}

// LosesReplies returns the fault of which the next replies to a request that contains the pattern
// are lost, with the connection.
func LosesReplies(patterns ...string) Fault {
	return Fault{begin: func(_ testing.TB, v *Victim) {
		for _, pattern := range patterns {
			v.Proxy.CutReply(pattern, 3)
		}
	}}
}

// setting changes a setting of the server, and changes it back.
func setting(f Fault, name, during, otherwise string) Fault {
	f.begin = func(t testing.TB, v *Victim) { v.Server.Do(t, "CONFIG", "SET", name, during) }
	f.end = func(t testing.TB, v *Victim) { v.Server.Do(t, "CONFIG", "SET", name, otherwise) }
	return f
}

// command is the server's execution of one command, and of another one at the end.
func command(f Fault, begin, end []string) Fault {
	f.begin = func(t testing.TB, v *Victim) { v.Server.Do(t, begin...) }
	f.end = func(t testing.TB, v *Victim) { v.Server.Do(t, end...) }
	return f
}

func words(command ...string) []string { return command }

// refuses waits until the server answers a command with a code.
func refuses(t testing.TB, v *Victim, code string, command ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := v.Server.Call(command...)
		return err != nil && strings.HasPrefix(err.Error(), code)
	}, 10*time.Second, time.Millisecond, "the server does not say "+code)
}

var table = map[string]Fault{
	"hangs": {
		Told:  NoAnswer,
		begin: func(t testing.TB, v *Victim) { v.Server.Pause(t) },
		end:   func(t testing.TB, v *Victim) { v.Server.Resume(t) },
	},
	"is down and comes back empty": {
		Told:  NoAnswer,
		Takes: true,
		begin: func(t testing.TB, v *Victim) { v.Server.Kill(t) },
		end:   func(t testing.TB, v *Victim) { v.Server.Restart(t) },
	},
	"restarts empty": {
		Takes: true,
		begin: func(t testing.TB, v *Victim) { v.Server.Restart(t) },
	},
	"is emptied": {
		Takes: true,
		begin: func(t testing.TB, v *Victim) { v.Server.Do(t, "FLUSHALL") },
	},
	"is black-holed": {
		Told:  NoAnswer,
		begin: func(_ testing.TB, v *Victim) { v.Proxy.BlackHole() },
		end:   func(_ testing.TB, v *Victim) { v.Proxy.Reset(); v.Proxy.Pass() },
	},
	"answers nothing": {
		Told:  NoAnswer,
		begin: func(_ testing.TB, v *Victim) { v.Proxy.HoldReplies() },
		end:   func(_ testing.TB, v *Victim) { v.Proxy.Pass() },
	},
	"executes, and the replies are lost": {
		Told:  NoAnswer,
		begin: func(_ testing.TB, v *Victim) { v.Proxy.HoldReplies() },
		end:   func(_ testing.TB, v *Victim) { v.Proxy.Reset(); v.Proxy.Pass() },
	},
	"refuses connections": {
		Told:  NoAnswer,
		begin: func(_ testing.TB, v *Victim) { v.Proxy.Refuse(); v.Proxy.Reset() },
		end:   func(t testing.TB, v *Victim) { require.NoError(t, v.Proxy.Accept()) },
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
	"is out of memory": setting(Fault{Told: ForGood, Code: "OOM"}, "maxmemory", "1", "0"),
	"lacks replicas": setting(Fault{Told: ForNow, Code: "NOREPLICAS"},
		"min-replicas-to-write", "1", "0"),
	"has become a replica": command(Fault{Told: ForGood, Code: "READONLY", KeepsLocks: true},
		words("REPLICAOF", "127.0.0.1", "1"), // nobody listens there
		words("REPLICAOF", "NO", "ONE")),
	"forbids scripts": command(Fault{Told: ForGood, Code: "NOPERM", KeepsLocks: true},
		words("ACL", "SETUSER", "default", "-@scripting"),
		words("ACL", "SETUSER", "default", "+@all")),
	"cannot save": {
		Told:       ForGood,
		Code:       "MISCONF",
		KeepsLocks: true,
		// No file can have this name: a snapshot is made, and then not put in its place. Without an
		// append-only file the server would not start, since it could not look for a snapshot either.
		Options: []redistest.Option{redistest.WithAppendOnly(),
			redistest.WithArgs("--dbfilename", strings.Repeat("x", 256), "--save", "3600", "1")},
		begin: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
			_, _ = v.Server.Call("BGSAVE") // or one is under way
			refuses(t, v, "MISCONF", "SET", "unsaved", "1")
		},
		end: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
			v.Server.Do(t, "DEL", "unsaved")
		},
	},
	"is busy": {
		Told: ForNow,
		Code: "BUSY",
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
		Told: ForNow,
		Code: "LOADING",
		// Before Redis 7 a server that loads looks at its connections every 2 MB only, and cannot be
		// told otherwise. The data takes it some seconds.
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
		Told:  Held,
		Takes: true,
		begin: func(t testing.TB, v *Victim) {
			const swap = "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], 'somebody', 1)"
			v.Server.Do(t, "EVAL", swap, "1", v.Lock)
		},
		end: func(t testing.TB, v *Victim) { v.Server.Do(t, "HDEL", v.Lock, "somebody") },
	},
	"has something else there": {
		Told:  ForGood,
		Code:  "WRONGTYPE",
		Takes: true,
		begin: func(t testing.TB, v *Victim) { v.Server.Do(t, "SET", v.Lock, "precious") },
		end:   func(t testing.TB, v *Victim) { v.Server.Do(t, "DEL", v.Lock) },
	},
	"is force-unlocked": {
		Takes: true,
		begin: func(t testing.TB, v *Victim) { v.ForceUnlock(t) },
	},
	"lets it expire": {
		Takes: true,
		begin: func(t testing.TB, v *Victim) {
			v.Server.Do(t, "PEXPIRE", v.Lock, "1")
			<-time.After(5 * time.Millisecond)
		},
	},
}
