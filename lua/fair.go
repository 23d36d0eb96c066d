package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var (
	fairAcquire     = load("fair_acquire.lua")
	fairRelease     = load("fair_release.lua")
	fairForceUnlock = load("fair_force_unlock.lua")
)

// Fair is how those who share a fair lock deal with each other.
type Fair struct {
	// Lock is its name.
	Lock string
	// Sharded tells that waiters listen on sharded channels.
	Sharded bool
	// Counted tells that PUBLISH answers how many listen: on a single node or on sharded channels. On a cluster it
	// counts only those of one node.
	Counted bool
}

// How long the head of the queue has to take a free lock before it is dropped: it is told at once, asks every 5 s by
// itself, and may have to wait for a connection. One that nobody listens for has just queued, is reconnecting, or is dead.
const (
	heeded  = 10 * time.Second
	unheard = 2 * time.Second
)

// MaxNap bounds how long a waiter sleeps before it must ask again, so as to keep its place: half of what [Fair.Acquire]
// lets a place outlast the last question.
const MaxNap = 5 * time.Second

func (f Fair) keys() []string {
	return []string{f.Lock, queueKey(f.Lock), scoresKey(f.Lock), turnKey(f.Lock)}
}

// notice is how the head of the queue is told, in the order of the scripts' arguments.
func (f Fair) notice() []string {
	patience := unheard
	if !f.Counted {
		patience = heeded
	}
	return []string{Channel(f.Lock), Announcement{Sharded: f.Sharded}.verb(), milliseconds(heeded), milliseconds(patience)}
}

// Acquire takes the lock for owner with the given hold count and lease, if it is free and nobody is queued before. If not,
// an owner that waits is put at the end of the queue, where it stays for at least its window and, as long as it asks
// every [MaxNap], for ever. It returns who holds the lock or comes first; nil means that the owner has it.
func (f Fair) Acquire(ctx context.Context, c rueidis.CoreClient, owner string, count int, lease time.Duration, waits bool, window time.Duration) (*Holder, error) {
	args := append([]string{owner, strconv.Itoa(count), milliseconds(lease), flag(waits), milliseconds(window)}, f.notice()...)
	args = append(args, milliseconds(MaxNap))
	return inTheWay(fairAcquire.run(ctx, c, f.keys(), args))
}

// Release leaves owner with the given hold count. With count 0 it loses the lock, whatever count it had, and its place
// in the queue, which it got with the given window; and the next in the queue is told.
func (f Fair) Release(ctx context.Context, c rueidis.CoreClient, owner string, count int, window time.Duration) (Released, error) {
	args := append([]string{owner, strconv.Itoa(count), milliseconds(window)}, f.notice()...)
	return released(fairRelease.run(ctx, c, f.keys(), args))
}

// ForceUnlock frees the lock whoever holds it, and tells the head of the queue.
func (f Fair) ForceUnlock(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return released(fairForceUnlock.run(ctx, c, f.keys(), f.notice()))
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
