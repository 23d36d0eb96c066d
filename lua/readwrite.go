package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var (
	readAcquire          = load("read_acquire.lua")
	readReenter          = load("read_reenter.lua")
	readRelease          = load("read_release.lua")
	writeAcquire         = load("write_acquire.lua")
	writeRelease         = load("write_release.lua")
	readWriteForceUnlock = load("readwrite_force_unlock.lua")
)

// ReadWrite is how those who share a read-write lock deal with each other.
type ReadWrite struct {
	// Lock is its name.
	Lock string
	// Sharded tells that waiters listen on sharded channels.
	Sharded bool
	// Bound is for how long at a time new readers step back for a writer that waits. 0 means that
	// nobody steps back for anybody, and no key of this library's own is used.
	Bound time.Duration
}

const (
	// lapse is when a waiter that does not ask again is forgotten; it asks every 5 s.
	lapse = 7 * time.Second
	// turn is for how long readers that waited for a writer may pass, and writers step back, once
	// it has left: for a message to come and a command to go. It ends 10 ms after the last of them
	// has left.
	turn = 100 * time.Millisecond
)

// AcquireRead takes one read hold, the one with the given number, for owner, or returns who is in
// the way. A nil holder means that the owner has it. Among those who wait, one that waited already
// may pass when a writer has left.
func (r ReadWrite) AcquireRead(
	ctx context.Context,
	c rueidis.CoreClient,
	owner string,
	number int,
	lease time.Duration,
	waits, waited bool,
) (*Holder, error) {
	how := flag(waits)
	if waits && waited {
		how = "2"
	}
	return inTheWay(readAcquire.run(
		ctx,
		c,
		[]string{
			r.Lock,
			holdsKey(r.Lock, owner),
			writerKey(r.Lock),
			readerKey(r.Lock),
			readersTurnKey(r.Lock),
		},
		[]string{
			owner,
			strconv.Itoa(number),
			milliseconds(lease),
			how,
			milliseconds(r.Bound),
			milliseconds(lapse),
		},
	))
}

// ReenterRead adds the read hold with the given number to those that owner has. It returns false,
// and changes nothing, when owner has none.
func (r ReadWrite) ReenterRead(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, lease time.Duration,
) (bool, error) {
	return reentered(readReenter.run(ctx, c, []string{r.Lock, holdsKey(r.Lock, owner)},
		[]string{owner, strconv.Itoa(number), milliseconds(lease)}))
}

// ReleaseRead leaves owner with the given number of read holds, which last as long as the longest
// of those it had.
func (r ReadWrite) ReleaseRead(
	ctx context.Context, c rueidis.CoreClient, owner string, number int,
) (Released, error) {
	a := r.announcement(Unlocked)
	return released(
		readRelease.run(
			ctx,
			c,
			[]string{r.Lock, holdsKey(r.Lock, owner), readersTurnKey(r.Lock)},
			[]string{
				owner,
				strconv.Itoa(number),
				Suffix(r.Lock, ""),
				a.Channel,
				a.Message,
				a.verb(),
				milliseconds(MaxNap),
			},
		),
	)
}

// AcquireWrite takes the write lock for owner with the given number of holds, or returns who is in
// the way. A nil holder means that the owner has it. An owner that only reads is in its own way.
func (r ReadWrite) AcquireWrite(
	ctx context.Context,
	c rueidis.CoreClient,
	owner string,
	number int,
	lease time.Duration,
	waits bool,
) (*Holder, error) {
	return inTheWay(
		writeAcquire.run(
			ctx,
			c,
			[]string{r.Lock, writerKey(r.Lock), readersTurnKey(r.Lock)},
			[]string{
				WriteField(owner),
				strconv.Itoa(number),
				milliseconds(lease),
				flag(waits),
				milliseconds(r.Bound),
				milliseconds(lapse),
			},
		),
	)
}

// ReenterWrite is [Reenter] for the write lock.
func (r ReadWrite) ReenterWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, lease time.Duration,
) (bool, error) {
	return Reenter(ctx, c, r.Lock, WriteField(owner), number, lease)
}

// ReleaseWrite leaves owner with the given number of write holds. With 0 it loses the write lock,
// whatever number it had, and nobody steps back for it any more; it is a reader then if it has read
// holds.
func (r ReadWrite) ReleaseWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, number int,
) (Released, error) {
	return r.releaseWrite(ctx, c, owner, number, "", 0)
}

// PassWrite is ReleaseWrite with 0, except that the owner next has the write lock then, for lease,
// if neither owner nor anybody of this library that waits wants to read.
func (r ReadWrite) PassWrite(
	ctx context.Context, c rueidis.CoreClient, owner, next string, lease time.Duration,
) (Released, error) {
	return r.releaseWrite(ctx, c, owner, 0, WriteField(next), lease)
}

func (r ReadWrite) releaseWrite(
	ctx context.Context,
	c rueidis.CoreClient,
	owner string,
	number int,
	next string,
	lease time.Duration,
) (Released, error) {
	a := r.announcement(UnlockedForAll)
	milli := "0"
	if r.Bound > 0 {
		milli = milliseconds(turn)
	}
	return released(
		writeRelease.run(
			ctx,
			c,
			[]string{r.Lock, writerKey(r.Lock), readerKey(r.Lock), readersTurnKey(r.Lock)},
			[]string{
				WriteField(owner),
				strconv.Itoa(number),
				Suffix(r.Lock, ""),
				a.Channel,
				a.Message,
				a.verb(),
				milli,
				next,
				milliseconds(lease),
			},
		),
	)
}

// ForceUnlockReads frees the lock of all its readers, if it has no writer.
func (r ReadWrite) ForceUnlockReads(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return r.forceUnlock(ctx, c, "read")
}

// ForceUnlockWrite frees the lock of its writer, and of what the writer reads.
func (r ReadWrite) ForceUnlockWrite(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return r.forceUnlock(ctx, c, "write")
}

func (r ReadWrite) forceUnlock(
	ctx context.Context, c rueidis.CoreClient, mode string,
) (Released, error) {
	a := r.announcement(UnlockedForAll)
	return released(readWriteForceUnlock.run(ctx, c, []string{r.Lock},
		[]string{mode, Suffix(r.Lock, ""), a.Channel, a.Message, a.verb()}))
}

func (r ReadWrite) announcement(message string) Announcement {
	return Announcement{Channel: RWChannel(r.Lock), Message: message, Sharded: r.Sharded}
}
