package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// doAll executes a command on all servers.
func (e *Env) doAll(t *testing.T, args ...string) {
	t.Helper()
	for _, server := range e.Servers {
		server.Do(t, args...)
	}
}

// only returns a filter of kinds by their names.
func only(names ...string) func(Kind) bool {
	return func(k Kind) bool {
		for _, name := range names {
			if k.Name == name {
				return true
			}
		}
		return false
	}
}

// ofOneClient is a filter of kinds: those that are an [rlock.Lock].
func ofOneClient(k Kind) bool { return k.Name != "multilock" && k.Name != "redlock" }

// key returns a key that the lock of a name has in Redis while it is held.
func (k Kind) key(name string) string {
	if k.Name == "multilock" {
		return name + ":1"
	}
	return name
}

// plant writes what the contender of a lock has in Redis while an owner of another process holds
// it, without an expiry.
func (e *Env) plant(t *testing.T, k Kind, name, owner string) {
	t.Helper()
	switch k.Name {
	case "read", "write":
		e.doAll(t, "HSET", name, "mode", "write", owner+":write", "1")
	case "write-behind-readers":
		e.doAll(t, "HSET", name, "mode", "read", owner, "1")
		e.doAll(t, "SET", "{"+name+"}:"+owner+":rwlock_timeout:1", "1")
	default:
		e.doAll(t, "HSET", k.key(name), owner, "1")
	}
}

// acquiredSince returns the hold of a waiter, which something woke at an instant. In virtual time
// it takes no time to wake it. A waiter that was not woken asks up to 5 s later.
func (e *Env) acquiredSince(
	t *testing.T, woken time.Time, waiter <-chan locktest.Outcome,
) *rlock.Hold {
	t.Helper()
	o := locktest.Result(t, waiter)
	require.NoError(t, o.Err)
	if e.Virtual {
		require.Zero(t, o.At.Sub(woken))
	}
	require.Less(t, o.At.Sub(woken), locktest.Missed)
	return o.Hold
}
