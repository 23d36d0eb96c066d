package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// ReadWriteLock is a pair of locks under one name: any number of readers, or one writer, hold it at a time. It is
// Redisson's RReadWriteLock, and safe for concurrent use.
//
// An owner that writes may read as well, and goes on reading when it has released the write lock: others that wait to read
// are let in then. Take both locks with a context of [WithOwner] for that: a context of the write hold ends with it. The
// other way round is impossible: an owner that reads and asks for the write lock would wait for itself, and gets
// [ErrUpgrade] at once.
//
// Each read hold has its own lease: a reader that died keeps a writer waiting for its own lease only, however long others go
// on reading.
type ReadWriteLock struct{ read, write *Lock }

// NewReadWriteLock returns the read-write lock called name. For impossible names see [Client.NewLock]. A name that is used
// for a read-write lock should not be used for a lock of another kind: they exclude each other, but not always wake each
// other.
func (c *Client) NewReadWriteLock(name string) *ReadWriteLock {
	pair := readWrite{wire: c.wire, name: name}
	if c.options.WriterPreference == PreferWriters {
		pair.bound = c.options.WatchdogLease
	}
	return &ReadWriteLock{
		read:  c.newLock(name, readWriteKind, shared, read{pair}),
		write: c.newLock(name, readWriteKind, exclusive, write{pair}),
	}
}

// readWriteKind is the kind of place that both sides of a read-write lock share.
const readWriteKind = "readwrite"

// Name is the name of the lock.
func (l *ReadWriteLock) Name() string { return l.read.name }

// Read is the side for readers. While a writer of this library waits, new readers step back for it, unless
// Options.WriterPreference says otherwise.
func (l *ReadWriteLock) Read() *Lock { return l.read }

// Write is the side for writers.
func (l *ReadWriteLock) Write() *Lock { return l.write }

// readWrite is what both sides have in common.
type readWrite struct {
	wire  *wire
	name  string
	bound time.Duration // for how long readers step back for a writer at a time
}

func (k readWrite) script() lua.ReadWrite {
	return lua.ReadWrite{Lock: k.name, Sharded: k.wire.isSharded(), Bound: k.bound}
}

func (k readWrite) batch() int { return 1 }

func (k readWrite) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.Inspect(context.Background(), redis, k.name)
}

// read is the kind of the readers' side.
type read struct{ readWrite }

func (k read) acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error) {
	holder, err := k.script().AcquireRead(ctx, redis, b.owner, 1, b.lease, b.waits, b.waited)
	return grant{holder: holder}, err
}

func (k read) reenter(redis rueidis.CoreClient, owner string, count int, lease time.Duration) (bool, error) {
	return k.script().ReenterRead(context.Background(), redis, owner, count, lease)
}

func (k read) release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, _ heir) (lua.Released, error) {
	return k.script().ReleaseRead(ctx, redis, owner, count)
}

func (k read) withdraw(redis rueidis.CoreClient, bids ...bid) (lua.Released, error) {
	return k.release(context.Background(), redis, bids[0].owner, 0, heir{})
}

func (k read) forceUnlock(redis rueidis.CoreClient) (lua.Released, error) {
	return k.script().ForceUnlockReads(context.Background(), redis)
}

func (k read) claim(owner string) lua.Renewal { return lua.Renewal{Lock: k.name, Owner: owner} }

func (k read) queues() bool { return false }

func (k read) passes() bool { return false }

func (k read) call(string) call {
	return call{line: lineName{"read", k.name}, channel: lua.RWChannel(k.name)}
}

// write is the kind of the writers' side.
type write struct{ readWrite }

func (k write) acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error) {
	holder, err := k.script().AcquireWrite(ctx, redis, b.owner, 1, b.lease, b.waits)
	return grant{holder: holder}, err
}

func (k write) reenter(redis rueidis.CoreClient, owner string, count int, lease time.Duration) (bool, error) {
	return k.script().ReenterWrite(context.Background(), redis, owner, count, lease)
}

func (k write) release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, to heir) (lua.Released, error) {
	if to.owner != "" && to.first { // whether others wait elsewhere is not known
		return k.script().PassWrite(ctx, redis, owner, to.owner, to.lease)
	}
	return k.script().ReleaseWrite(ctx, redis, owner, count)
}

func (k write) withdraw(redis rueidis.CoreClient, bids ...bid) (lua.Released, error) {
	return k.release(context.Background(), redis, bids[0].owner, 0, heir{})
}

func (k write) forceUnlock(redis rueidis.CoreClient) (lua.Released, error) {
	return k.script().ForceUnlockWrite(context.Background(), redis)
}

func (k write) claim(owner string) lua.Renewal {
	return lua.Renewal{Lock: k.name, Owner: lua.WriteField(owner)}
}

// queues: readers step back for a writer that waits, until it withdraws.
func (k write) queues() bool { return k.bound > 0 }

func (k write) passes() bool { return k.wire.handsOver() }

func (k write) call(string) call {
	return call{line: lineName{"write", k.name}, channel: lua.RWChannel(k.name)}
}
