package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// ReadWriteLock is a pair of locks under one name: any number of readers, or one writer, hold it at
// a time. It is Redisson's RReadWriteLock, and safe for concurrent use.
//
// An owner that writes may read as well, and still reads after it has released the write lock:
// other readers are let in then. Acquire both with a context of [WithOwner] for that, because a
// context of the write hold ends with it. The reverse is impossible: an owner that reads and asks
// for the write lock would wait for itself, and gets [ErrUpgrade] at once.
//
// Each read hold has its own lease: a reader that died blocks a writer for its own lease only,
// however long others still read. A reader of Redisson that died blocks a writer until no other
// reader has taken or renewed the lock for one lease.
type ReadWriteLock struct{ read, write *Lock }

// NewReadWriteLock returns the read-write lock called name. For impossible names see
// [Client.NewLock]. A name of a read-write lock should not be used for a lock of another kind: they
// exclude each other, but do not always wake each other.
func (c *Client) NewReadWriteLock(name string) *ReadWriteLock {
	name = c.options.mapped(name)
	pair := readWrite{client: c, name: name}
	if c.options.WriterPreference == PreferWriters {
		pair.bound = c.options.WatchdogLease
	}
	readers := traits{family: "readwrite", mode: sharedMode, sharesKey: true, inspect: lua.Inspect}
	writers := readers
	writers.mode, writers.handsOver, writers.beside = exclusiveMode, true, errUpgrade
	return &ReadWriteLock{c.newLock(name, readers, read{pair}),
		c.newLock(name, writers, write{pair})}
}

// Name returns the name of the lock.
func (rw *ReadWriteLock) Name() string { return rw.read.name }

// Read returns the lock for readers. While a writer of this library waits, new readers step back
// for it, unless Options.WriterPreference says otherwise.
func (rw *ReadWriteLock) Read() *Lock { return rw.read }

// Write returns the lock for writers.
func (rw *ReadWriteLock) Write() *Lock { return rw.write }

// readWrite is the common part of both modes.
type readWrite struct {
	client *Client
	name   string
	bound  time.Duration // for how long readers step back for a writer at a time
}

func (k readWrite) script() lua.ReadWrite {
	return lua.ReadWrite{Lock: k.name, Channels: k.client.transport.Channels(), Bound: k.bound}
}

// read is the kind of the lock for readers.
type read struct{ readWrite }

func (k read) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	holder, err := k.script().AcquireRead(ctx, redis, r.owner, 1, r.lease, r.waits, r.waited)
	return reply{holder: holder}, err
}

func (k read) release(ctx context.Context, owner string, count int, _ offer) (lua.Released, error) {
	return k.script().ReleaseRead(ctx, k.client.redis, owner, count)
}

func (k read) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis, "read")
}

func (k read) waiting(owner string, beside bool) *waiting {
	queue := queueName{"read", k.name}
	if beside {
		queue.waiters = owner // the other readers wait for this owner
	}
	return queue.waiting(wire.RWChannel(k.name))
}

// write is the kind of the lock for writers.
type write struct{ readWrite }

func (k write) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	holder, err := k.script().AcquireWrite(ctx, redis, r.owner, 1, r.lease, r.waits)
	return reply{holder: holder}, err
}

func (k write) release(ctx context.Context, owner string, n int, o offer) (lua.Released, error) {
	next, lease := "", time.Duration(0)
	if o.Successor != nil && o.First { // nobody knows whether others wait elsewhere
		next, lease = wire.WriteField(o.Successor.Owner), o.Successor.Lease
	}
	return k.script().ReleaseWrite(ctx, k.client.redis, owner, n, next, lease)
}

func (k write) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis, "write")
}

func (k write) waiting(string, bool) *waiting {
	how := queueName{"write", k.name}.waiting(wire.RWChannel(k.name))
	how.queued = k.bound > 0 // readers step back for a waiting writer, until it is cleaned up
	return how
}
