package rlocktest

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// strangers hold locks without being clients.
type strangers struct {
	mu    sync.Mutex
	count int               // guarded by mu; how many there have been
	holds map[string]string // guarded by mu; who holds which lock, by its name
}

// strangersLease is what strangers renew: Options.WatchdogLease by default.
const strangersLease = 30 * time.Second

// Busy makes a stranger hold a lock of any kind until free is called or the test ends. The stranger
// renews the lease, like another process with the watchdog. Busy fails the test if the lock is
// held. free wakes waiters, and further calls of free do nothing. name is the name in Redis, so
// apply the NameMapper of your [rlock.Options], if it is set.
func (r *Redis) Busy(name string) (free func()) {
	r.t.Helper()
	return r.busy(name, strangersLease, true)
}

// BusyFor is like [Redis.Busy], but the stranger does not renew the lease, like a process that has
// died. The lock becomes free when the lease ends, and Redis sends no message then.
func (r *Redis) BusyFor(name string, lease time.Duration) (free func()) {
	r.t.Helper()
	if lease < time.Millisecond {
		r.t.Fatalf("rlocktest: lock %q: BusyFor needs a lease of at least 1ms (got %v)", name, lease)
	}
	return r.busy(name, lease, false)
}

func (r *Redis) busy(name string, lease time.Duration, renewed bool) (free func()) {
	r.t.Helper()
	r.strangers.mu.Lock()
	defer r.strangers.mu.Unlock()
	r.strangers.count++
	owner := fmt.Sprintf("stranger:%d", r.strangers.count)
	r.server.CatchUp()
	holder, err := r.eval(occupy, name, owner, strconv.FormatInt(lease.Milliseconds(), 10))
	switch {
	case err != nil:
		r.t.Fatalf("rlocktest: lock %q: cannot be made busy: %v", name, err)
	case holder != "":
		r.t.Fatalf("rlocktest: lock %q: cannot be made busy, because %s holds it; release the lock "+
			"first", name, holder)
	case renewed:
		r.server.Keep(name, lease)
	}
	r.strangers.holds[name] = owner
	return func() { r.free(name, owner) }
}

// occupy takes a lock and returns ”, or returns a holder.
const occupy = `
local holders = redis.call('HKEYS', KEYS[1])
if #holders > 0 then return holders[1] == 'mode' and holders[2] or holders[1] end
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return ''`

// free removes a stranger's hold, if it lasts, and tells waiters.
func (r *Redis) free(name, owner string) {
	r.strangers.mu.Lock()
	defer r.strangers.mu.Unlock()
	if r.strangers.holds[name] != owner {
		return
	}
	r.forget(name)
	r.server.CatchUp()
	if r.server.Redis().HGet(name, owner) != "" {
		r.server.Redis().Del(name)
		r.wake(name)
	}
}

// forget ends the renewals of a stranger, if one holds the lock. The caller holds strangers.mu.
func (r *Redis) forget(name string) {
	delete(r.strangers.holds, name)
	r.server.Keep(name, 0)
}

// eval runs a script with one key that returns a string. It works while the server is down.
func (r *Redis) eval(script, key string, args ...string) (string, error) {
	conn, err := r.server.Redis().Dial()
	if err != nil {
		return "", err
	}
	client := proto.NewClient(conn)
	defer func() { _ = client.Close() }() // nothing is left to lose
	reply, err := client.Do(append([]string{"EVAL", script, "1", key}, args...)...)
	if err != nil {
		return "", err
	}
	return proto.ReadString(reply)
}
