package rlocktest

import (
	"context"
	"strings"
	"time"

	"holdfast/internal/wire"
	"holdfast/rlock"
)

// Lose removes a lock from the server, like a failover to a replica that has not received the lock.
// Holds of clients made by this Redis end with [rlock.ErrLost] before Lose returns. Holds of other
// clients, and the parts of a RedLock, end at the next renewal. Waiters ask for the lock at once.
// Lose fails the test if nobody holds the lock.
func (r *Redis) Lose(name string) {
	r.t.Helper()
	if !r.remove(name) {
		r.t.Fatalf("rlocktest: lock %q: cannot be lost, because nobody holds it; acquire the "+
			"lock first", name)
	}
	r.recheck(name)
	r.wake(name)
}

// remove deletes a lock and the keys of its read holds, and reports whether it was held.
func (r *Redis) remove(name string) (held bool) {
	r.strangers.mu.Lock()
	defer r.strangers.mu.Unlock()
	r.forget(name)
	r.server.CatchUp()
	data := r.server.Redis()
	held = data.Type(name) == "hash" && data.Del(name)
	for _, key := range data.Keys() {
		if strings.HasPrefix(key, wire.Suffix(name, "")) && strings.Contains(key, ":rwlock_timeout:") {
			data.Del(key)
		}
	}
	return held
}

// recheck makes the holds of a lock, or of all locks for "", ask the server whether they last.
func (r *Redis) recheck(name string) {
	for _, h := range r.holds.all() {
		if name == "" || h.Name() == name {
			// It extends nothing that lasts longer. The error ends the hold, if there is one.
			_ = h.Extend(context.Background(), shortestLease)
		}
	}
}

const shortestLease = rlock.Lease(3 * time.Millisecond)

// Down breaks all connections, and rejects new connections until [Redis.Up] is called or the test
// ends. The server keeps its data, and leases keep running.
func (r *Redis) Down() { r.server.SetDown(true) }

// Up ends [Redis.Down]. Up returns once the clients of this Redis reach the server again, or after
// a second. A client that could not reach the server pauses for up to 100 ms before the next
// attempt, so without this delay a test with a shorter wait would fail by chance.
func (r *Redis) Up() {
	r.server.SetDown(false)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, client := range r.allClients() {
		_, _ = client.NewLock("rlocktest").Info(ctx) // it waits for the pause to end
	}
}

// Slow delays each reply and message of the server by d. The server still executes commands at
// once. Slow(0) ends the delay, even for replies under way. If d is longer than
// Options.CommandTimeout, the server seems to hang, and the outcome of commands is unknown.
func (r *Redis) Slow(d time.Duration) { r.server.SetDelay(d) }

// Advance moves the clock of the server by d, as if all client processes had paused for d. Leases
// expire that clients would have renewed. Lost holds of clients made by this Redis end with
// [rlock.ErrLost] before Advance returns. Waiters ask at once.
//
// The clock of the test does not move, so waits and contexts do not end, and a hold whose lease has
// not expired trusts the lease for d too long. In a bubble of testing/synctest, use time.Sleep
// instead: both clocks move, and the watchdog renews.
func (r *Redis) Advance(d time.Duration) {
	r.t.Helper()
	if d < 0 {
		r.t.Fatalf("rlocktest: Advance needs a positive duration (got %v)", d)
	}
	r.server.Advance(d)
	r.recheck("")
	r.wake("")
}

// AwaitWaiter blocks until a call waits for the lock. AwaitWaiter fails the test if no call waits
// within 10 s. In a bubble of testing/synctest, you can use synctest.Wait instead.
func (r *Redis) AwaitWaiter(name string) {
	r.t.Helper()
	for late := time.Now().Add(patience); !r.waitedFor(name); {
		if time.Now().After(late) {
			r.t.Fatalf("rlocktest: lock %q: nobody has waited for it within %v; start the waiter first",
				name, patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// waitedFor reports whether somebody listens for releases of a lock. A client listens for a moment
// longer than its calls wait.
func (r *Redis) waitedFor(name string) bool {
	r.mu.Lock()
	others := r.others
	r.mu.Unlock()
	return len(r.channels(name)) > 0 && (others || r.waiters() > 0)
}

const patience = 10 * time.Second

// wake makes all who wait for a lock, or for any lock for "", ask for it.
func (r *Redis) wake(name string) {
	for _, channel := range r.channels(name) {
		message := "0"
		if strings.HasPrefix(channel, rwChannels) {
			message = "1" // all readers
		}
		r.server.Redis().Publish(channel, message)
	}
}

// The beginnings of all channels on which clients wait.
var (
	lockChannels = strings.TrimSuffix(wire.Channel("name"), "{name}")
	rwChannels   = strings.TrimSuffix(wire.RWChannel("name"), "{name}")
)

// channels returns the channels on which somebody waits for a lock, or for any lock for "".
func (r *Redis) channels(name string) []string {
	var waiting []string
	for _, channel := range r.server.Redis().PubSubChannels("") {
		switch {
		case name != "" && (channel == wire.RWChannel(name) || channel == wire.Channel(name) ||
			strings.HasPrefix(channel, wire.FairChannel(name, ""))),
			name == "" && (strings.HasPrefix(channel, lockChannels) ||
				strings.HasPrefix(channel, rwChannels)):
			waiting = append(waiting, channel)
		}
	}
	return waiting
}
