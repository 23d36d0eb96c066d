package rlock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wire"
	"holdfast/lua"
	"holdfast/watchdog"
)

// ReadWriteLock is a pair of locks with the same name. Any number of readers or one writer can hold
// the lock. ReadWriteLock is compatible with RReadWriteLock of Redisson, and safe for concurrent
// use.
//
// A writer may also read. After the writer has released the write lock, its read hold lasts, and
// other readers get in. Acquire both locks with a context of [WithOwner] for that, because the
// context of the write hold ends with the hold. A reader cannot become a writer, because the reader
// would wait for itself. The attempt returns [ErrUpgrade] at once.
//
// Each read hold has its own lease, so a dead reader blocks a writer for its own lease only, even
// if others still read. A dead reader of Redisson blocks a writer until no other reader has
// acquired or renewed the lock for one lease.
type ReadWriteLock struct{ read, write *Lock }

// NewReadWriteLock returns the read-write lock with the given name. For impossible names, see
// [Client.NewLock]. Do not use the name for a lock of another kind, because such locks exclude each
// other but do not always wake each other's waiters.
func (c *Client) NewReadWriteLock(name string) *ReadWriteLock {
	name = c.options.mapped(name)
	pair := readWrite{client: c, name: name}
	if c.options.WriterPreference == PreferWriters {
		pair.bound = c.options.WatchdogLease
	}
	readers := traits{family: "readwrite", mode: sharedMode, sharesKey: true,
		wakes: owner.ReadWrite, inspect: lua.Inspect}
	writers := readers
	writers.mode, writers.beside = exclusiveMode, errUpgrade
	writers.handsOver, writers.takesTurns = true, true
	return &ReadWriteLock{c.newLock(name, readers, read{pair}),
		c.newLock(name, writers, write{pair})}
}

// Name returns the name of the lock.
func (rw *ReadWriteLock) Name() string { return rw.read.name }

// Read returns the lock for readers. While a writer of holdfast waits, new readers wait as well,
// unless you change Options.WriterPreference.
func (rw *ReadWriteLock) Read() *Lock { return rw.read }

// Write returns the lock for writers.
func (rw *ReadWriteLock) Write() *Lock { return rw.write }

// readWrite is the common part of both modes.
type readWrite struct {
	client *Client
	name   string
	bound  time.Duration // how long readers step back for a writer
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
	how.queued = k.bound > 0 // readers step back for a waiting writer, until its cleanup
	return how
}

// errUnconfirmed reports why a read hold is lost, because an earlier release of the same writer got
// no reply. That release may be under way and would release the new read hold, because both have
// the name of the write hold in Redis. While the owner writes, it keeps everybody else out. The
// read hold ends when the owner no longer writes.
var errUnconfirmed = errors.New(
	"an earlier release of the same owner had no reply, and may have removed the lock")

// count adds more to the number of unconfirmed releases of an owner's read holds.
func (ow *owned) count(owner string, more int) {
	if ow.unconfirmed == nil {
		ow.unconfirmed = make(map[string]int)
	}
	ow.unconfirmed[owner] += more
	if ow.unconfirmed[owner] <= 0 {
		delete(ow.unconfirmed, owner)
	}
}

// releaseUnconfirmed notes that the last release of a read hold may be under way while nobody waits
// for its reply.
func (a *acquisition) releaseUnconfirmed() {
	if a.lock.mode == sharedMode {
		a.session.Do(func(ow *owned) { ow.count(a.owner, 1) })
	}
}

// confirmRelease notes that Redis has executed an unconfirmed release. The release still counts if
// it may have removed a read hold, even a read hold that is just being acquired or released.
func confirmRelease(s *lockSession, owner string) {
	if s.TryLock() {
		defer s.Unlock()
		s.Do(func(ow *owned) {
			if ow.held[sharedMode] == nil {
				ow.count(owner, -1)
			}
		})
	}
}

// loss returns the error of a loss. A read hold may be gone because of an unconfirmed release.
func (a *acquisition) loss(reason error) *LostError {
	if errors.Is(reason, watchdog.ErrExpired) {
		reason = a.Expiry()
	}
	a.session.Do(func(ow *owned) {
		if a.lock.mode == sharedMode && ow.unconfirmed[a.owner] > 0 &&
			errors.Is(reason, watchdog.ErrGone) {
			reason = errUnconfirmed
		}
	})
	return &LostError{Lock: a.lock.name, Reason: reason}
}

// endReads ends the read hold of an owner that has released its write hold, if Redis no longer has
// the read hold.
func (a *acquisition) endReads(r lua.Released) {
	if a.lock.mode == sharedMode || !r.Held || r.Reading {
		return
	}
	if reading := held(a.session, sharedMode); reading != nil {
		reading.lose(watchdog.ErrGone)
	}
}

// endUntrusted ends the read hold of the owner if an unconfirmed release may remove the read hold
// and no write hold keeps others out. It is called when a hold of the owner has begun or ended. A
// write hold with an expired lease keeps nobody out, even before the watchdog notices.
func (a *acquisition) endUntrusted() {
	var untrusted *acquisition
	a.session.Do(func(ow *owned) {
		reading, writing := ow.held[sharedMode], ow.held[exclusiveMode]
		writes := writing != nil && time.Until(writing.watched.Deadline()) > 0
		if reading != nil && !writes && ow.unconfirmed[reading.owner] > 0 {
			untrusted = reading
		}
	})
	if untrusted != nil {
		untrusted.lose(errUnconfirmed)
	}
}

// kept reports whether Redis may keep the entry for longer, which is true for the write field of an
// owner that still reads.
func (cu cleanup) kept() bool {
	if cu.session == nil || cu.lock.mode == sharedMode {
		return false
	}
	reading := held(cu.session, sharedMode)
	return reading != nil && reading.owner == cu.request.owner
}

// cleanUp removes the entry of an owner in one mode, unless the session of the owner holds that
// mode under the same name.
func (k readWrite) cleanUp(batch []cleanup) (released lua.Released, err error) {
	cu := batch[0]
	s, m, owner := cu.session, cu.lock.mode, cu.request.owner
	untaken := s != nil && countUntaken(s, owner, m)
	if s != nil && !untaken {
		if !s.TryLock() {
			return released, &rediserr.Error{Class: rediserr.ClassTemporary,
				Message: "the session is locked"}
		}
		defer s.Unlock()
		if held(s, m) != nil { // its own release removes both, under the same name
			return released, nil
		}
	}
	c := cu.lock.client
	released, err = transport.Undo(c.calls, func(ctx context.Context) (lua.Released, error) {
		return cu.lock.kind.release(ctx, owner, 0, offer{})
	})
	if s != nil && m == sharedMode {
		switch unknown := err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown; {
		case untaken && !unknown:
			confirmRelease(s, owner)
		case unknown && !untaken:
			s.Do(func(ow *owned) { ow.count(owner, 1) })
		}
	}
	return released, err
}

// countUntaken reports whether a session holds nothing under the owner's name. If so, countUntaken
// counts the release of a read lock as unconfirmed, because its caller is about to send that
// release. The release of a write hold is never unconfirmed, because an owner that reads cannot
// write again under its name.
func countUntaken(s *lockSession, owner string, m mode) bool {
	untaken := false
	s.Do(func(ow *owned) {
		untaken = ow.holder() != owner
		if untaken && m == sharedMode {
			ow.count(owner, 1)
		}
	})
	return untaken
}
