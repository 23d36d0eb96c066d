package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// ReadWriteLock is a pair of locks under one name: any number of readers, or one writer, hold it at
// a time. It is Redisson's RReadWriteLock, and safe for concurrent use.
//
// An owner that writes may read as well, and still reads after it has released the write lock:
// other readers are let in then. Acquire both locks with a context of [WithOwner] for that, because
// a context of the write hold ends with it. The reverse is impossible: an owner that reads and asks
// for the write lock would wait for itself, and gets [ErrUpgrade] at once.
//
// Each read hold has its own lease: a reader that died blocks a writer for its own lease only,
// however long others still read.
type ReadWriteLock struct{ read, write *Lock }

// NewReadWriteLock returns the read-write lock called name. For impossible names see
// [Client.NewLock]. A name of a read-write lock should not be used for a lock of another kind: they
// exclude each other, but do not always wake each other.
func (c *Client) NewReadWriteLock(name string) *ReadWriteLock {
	pair := readWrite{client: c, name: name}
	if c.options.WriterPreference == PreferWriters {
		pair.bound = c.options.WatchdogLease
	}
	return &ReadWriteLock{read: c.newLock(name, read{pair}), write: c.newLock(name, write{pair})}
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
	return lua.ReadWrite{Lock: k.name, Sharded: k.client.transport.Sharded(), Bound: k.bound}
}

func (k readWrite) family() string { return "readwrite" }

func (k readWrite) inspect(ctx context.Context) (lua.State, error) {
	return lua.Inspect(ctx, k.client.redis, k.name)
}

// outlives returns true, because the other mode may keep the key of the lock.
func (k readWrite) outlives() bool { return true }

func (k readWrite) batchSize() int { return 1 }

func (k readWrite) plain() plain { return nil }

// read is the kind of the lock for readers.
type read struct{ readWrite }

func (k read) mode() mode { return sharedMode }

func (k read) beside() error { return nil }

func (k read) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	holder, err := k.script().AcquireRead(ctx, redis, r.owner, 1, r.lease, r.waits, r.waited)
	return reply{holder: holder}, err
}

func (k read) reenter(
	ctx context.Context, owner string, count int, lease time.Duration,
) (bool, error) {
	return k.script().ReenterRead(ctx, k.client.redis, owner, count, lease)
}

func (k read) release(ctx context.Context, owner string, count int, _ offer) (lua.Released, error) {
	return k.script().ReleaseRead(ctx, k.client.redis, owner, count)
}

func (k read) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis, "read")
}

func (k read) frees(other kind, held bool) bool {
	return held && other.outlives() && other.mode() == sharedMode
}

func (k read) has(h lua.Hold) bool { return !h.Write }

func (k read) waiting(r request) waiting {
	queue := queueName{"read", k.name}
	if r.beside {
		queue.kind = r.owner // the other readers wait for this owner
	}
	return waiting{queue: queue, topic: queue.topic(lua.RWChannel(k.name))}
}

func (k read) queued() bool { return false }

func (k read) handsOver() bool { return false }

func (k read) lease(owner string) lua.Renewal {
	return lua.Renewal{Lock: k.name, Owner: owner, Read: true}
}

// write is the kind of the lock for writers.
type write struct{ readWrite }

func (k write) mode() mode { return exclusiveMode }

func (k write) beside() error { return errUpgrade }

func (k write) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	holder, err := k.script().AcquireWrite(ctx, redis, r.owner, 1, r.lease, r.waits)
	return reply{holder: holder}, err
}

func (k write) reenter(
	ctx context.Context, owner string, count int, lease time.Duration,
) (bool, error) {
	return lua.Reenter(ctx, k.client.redis, k.name, lua.WriteField(owner), count, lease)
}

func (k write) release(
	ctx context.Context, owner string, count int, o offer,
) (lua.Released, error) {
	if next := o.Successor; next != nil && o.First { // nobody knows whether others wait elsewhere
		return k.script().PassWrite(ctx, k.client.redis, owner, 0, lua.WriteField(next.Owner),
			next.Lease)
	}
	return k.script().ReleaseWrite(ctx, k.client.redis, owner, count)
}

func (k write) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis, "write")
}

func (k write) frees(other kind, held bool) bool { return held && other.outlives() }

func (k write) has(h lua.Hold) bool { return h.Write }

func (k write) waiting(request) waiting {
	queue := queueName{"write", k.name}
	return waiting{queue: queue, topic: queue.topic(lua.RWChannel(k.name))}
}

// queued reports whether readers step back for a waiting writer, until it is cleaned up.
func (k write) queued() bool { return k.bound > 0 }

func (k write) handsOver() bool { return k.client.transport.HandsOver() }

func (k write) lease(owner string) lua.Renewal {
	return lua.Renewal{Lock: k.name, Owner: lua.WriteField(owner)}
}
