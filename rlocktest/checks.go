package rlocktest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"holdfast/rlock"
)

// Check selects checks at the end of a test, for [Redis.Allow].
type Check int

const (
	// Holds fails the test if a lock is still held. After the test has ended, the program has one
	// second to release its locks.
	Holds Check = 1 << iota
	// Waiters fails the test if a call still waits for a lock, one second after the end of the test.
	Waiters
	// Orders fails the test if goroutines took locks in opposite orders. For example, a goroutine with
	// A took B, and a goroutine with B took A. Longer cycles count as well. The goroutines did not
	// block each other in this test, but can do so in production. Calls with rlock.NoWait count, even
	// if they did not get the lock. A call that failed with rlock.ErrDeadlock always fails the test.
	// Package multilock takes several locks in the same order everywhere.
	Orders
	// Owners fails the test if two goroutines with the same owner were inside a lock at the same time.
	// An owner re-enters a lock that it holds, so goroutines with the same owner do not exclude each
	// other. Read locks do not count, because readers share them.
	//
	// A second goroutine may have a nested hold if that hold ends before the outer hold, no third
	// goroutine is inside, and the second goroutine has the context of the outer hold or was started
	// by the goroutine of the outer hold.
	Owners
	// Kinds fails the test if the program used the same name for locks that do not wake the waiters of
	// each other. A fair lock, a read-write lock, and a lock of any other kind exclude each other, but
	// a waiter notices the release of another kind up to five seconds late.
	Kinds
)

// grace is for how long a test may end before what it has left counts: a program may release locks
// when the test's context ends, which it does right before the checks.
const grace = time.Second

// Allow turns checks off, for a program that does on purpose what they look for.
func (r *Redis) Allow(checks Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowed |= checks
}

// end checks what the test has left, and ends everything.
func (r *Redis) end() {
	r.t.Helper()
	r.Slow(0)
	r.server.SetDown(false)
	problems := r.problems()
	for _, c := range r.allClients() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := c.Close(ctx); err != nil {
			problems = append(problems, err.Error())
		}
		cancel()
	}
	r.mu.Lock()
	connections := r.rueidis
	r.mu.Unlock()
	for _, c := range connections {
		c.Close()
	}
	r.server.Close()
	r.log.end()
	report := r.t.Error
	if r.t.Failed() {
		report = r.t.Log // what is left may be so because the test was cut short
	}
	for _, problem := range problems {
		report("rlocktest: " + problem)
	}
}

// problems waits until nothing is left that the checks look for, or grace is over, and returns what
// is left.
func (r *Redis) problems() []string {
	r.mu.Lock()
	allowed := r.allowed
	r.mu.Unlock()
	unended := r.holds.unended()
	var left []string
	for until := time.Now().Add(grace); ; time.Sleep(10 * time.Millisecond) {
		left = nil
		if allowed&Holds == 0 {
			left = append(left, r.heldLocks(unended)...)
		}
		if allowed&Waiters == 0 {
			left = append(left, r.waitingCalls()...)
		}
		if len(left) == 0 || time.Now().After(until) {
			break
		}
	}
	if allowed&Orders == 0 {
		left = append(left, r.holds.contradictions()...)
	}
	if allowed&Owners == 0 {
		left = append(left, r.holds.sharedOwners()...)
	}
	if allowed&Kinds == 0 {
		left = append(left, r.holds.mixedKinds()...)
	}
	return left
}

// heldLocks describes the holds of unended that were not released since, and what else is held: by
// RedLocks, and by clients that the program has made.
func (r *Redis) heldLocks(unended []*acquired) []string {
	var held []string
	owners := make(map[string]bool)
	for _, a := range unended {
		owners[a.hold.Owner()] = true
		if a.hold.Err() == nil || r.holds.isLost(a) {
			held = append(held, fmt.Sprintf("lock %q: not released: acquired%s; release each hold, "+
				"for example with defer hold.UnlockTo(&err)",
				a.hold.Name(), at(a.site)))
		}
	}
	ours := make(map[string]bool)
	for _, c := range r.allClients() {
		ours[c.ID()] = true
		for _, l := range watch.Held(c) {
			if !owners[l.Owner] {
				held = append(held, fmt.Sprintf("lock %q: not released: held by %s%s",
					l.Name, l.Owner, at(l.AcquiredAt)))
			}
		}
	}
	for _, l := range r.heldOnServer() {
		if !ours[l.client] {
			held = append(held, fmt.Sprintf("lock %q: not released: held by %s", l.name, l.owner))
		}
	}
	return held
}

func (r *Redis) allClients() []*rlock.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.clients)
}

// waitingCalls describes the calls that wait for locks.
func (r *Redis) waitingCalls() []string {
	if n := r.waiters(); n > 0 {
		return []string{fmt.Sprintf("%d calls still wait for a lock; cancel their contexts before the "+
			"test ends", n)}
	}
	return nil
}

// waiters returns how many calls of the clients of this Redis wait for locks.
func (r *Redis) waiters() (n int) {
	for _, c := range r.allClients() {
		n += watch.Waiters(c)
	}
	return n
}

// An owner as clients of this library and of Redisson write it: the id of the client, and a number.
var ownerField = regexp.MustCompile(`^([0-9a-f-]{36}):\d+(:write)?$`)

// serverHold is a lock that a client holds.
type serverHold struct{ name, owner, client string }

// heldOnServer returns the locks that clients hold, strangers excepted.
func (r *Redis) heldOnServer() []serverHold {
	r.server.CatchUp()
	var all []serverHold
	data := r.server.Redis()
	keys := data.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		if data.Type(key) != "hash" {
			continue
		}
		fields, err := data.HKeys(key)
		if err != nil {
			continue // it has ended just now
		}
		for _, field := range fields {
			if m := ownerField.FindStringSubmatch(field); m != nil {
				all = append(all, serverHold{key, field, m[1]})
			}
		}
	}
	return all
}
