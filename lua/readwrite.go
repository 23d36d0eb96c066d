package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// ReadWrite sends the commands of a read-write lock, which is held either by any number of readers
// or by one writer. A writer may also read. All clients of a lock must use the same settings.
//
// The hash of the lock has the mode, "read" or "write", and a field for each reader and for the
// writer. The writer has the field [wire.WriteField]. Each read hold also has a key of its own, and
// the TTL of this key is the lease of the hold. The hash lasts as long as the longest hold.
//
// Waiters of both modes listen on the same channel. They do not register, so a lock that becomes
// free is announced, unless [ReadWrite.ReleaseWrite] hands it over to the next writer of its
// client.
//
// Parameters named owner and all results have the plain name of the owner. Only next in
// [ReadWrite.ReleaseWrite], and [Held].Owner for a write lock, take the [wire.WriteField] of the
// owner.
//
// If Bound is above 0, a waiting writer has precedence over new readers. The writer keeps this
// precedence by asking at least every [LongestSleep]. When a writer leaves, readers that have
// waited have a turn of 100 ms, in which other writers do not get the lock.
type ReadWrite struct {
	// Lock is the name of the lock.
	Lock string
	// Channels selects the kind of channels on which waiters listen.
	Channels wire.Channels
	// Bound is how long new readers step back for a waiting writer. After each such time, readers are
	// let in for a tenth of Bound. With 0, readers never step back, and the scripts use only keys
	// that Redisson also uses.
	Bound time.Duration
}

const (
	// readersTurn is how long readers that waited for a writer may pass, and writers step back,
	// once it has left: enough for a message to arrive and a command to be sent. It ends 10 ms
	// after the last of them has left.
	readersTurn = 100 * time.Millisecond
)

// AcquireRead acquires the read lock for owner, and returns nil on success. Owner then has count
// read holds, and the new read hold lasts for at least lease.
//
// If a writer holds the lock or has precedence, AcquireRead returns the writer and does not change
// the lock, unless owner is that writer or already reads. Set waits if the caller is going to wait,
// and also waited if the caller has waited already. With both, the reader takes part in the turn
// that begins when the writer leaves. Waited has no effect without waits.
func (r ReadWrite) AcquireRead(
	ctx context.Context, c rueidis.CoreClient, owner string, count int, lease time.Duration, waits,
	waited bool,
) (*Holder, error) {
	waiting := flag[waits]
	if waits && waited {
		waiting = "2"
	}
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner),
		wire.WriterKey(r.Lock), wire.ReaderKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["read_acquire.lua"].Run(ctx, c, keys, owner, strconv.Itoa(count),
		milliseconds(lease), waiting, milliseconds(r.Bound), milliseconds(wire.WaiterTTL)))
}

// ReleaseRead sets the number of read holds of owner to count. If holds remain, they keep the
// longest lease that owner had. If count is 0, owner is no longer a reader. If no reader and no
// writer remain, the lock is free, and ReleaseRead announces the lock. If owner held no read lock,
// the lock does not change, and [Released].Held is false.
func (r ReadWrite) ReleaseRead(ctx context.Context, c rueidis.CoreClient, owner string, count int,
) (Released, error) {
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner), wire.ReadersTurnKey(r.Lock)}
	return released(scripts["read_release.lua"].Run(ctx, c, keys, owner, strconv.Itoa(count),
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.Unlocked, publish[r.Channels],
		milliseconds(LongestSleep)))
}

// AcquireWrite acquires the write lock for owner, and returns nil on success. Owner then has count
// write holds, and the lock lasts for at least lease.
//
// If readers or another writer hold the lock, AcquireWrite returns one of the holders and does not
// change the lock. The holder can be owner itself, because a reader cannot become a writer. During
// the turn of waiting readers, AcquireWrite returns a Holder without an Owner. Set waits if the
// caller is going to wait, so that the writer has precedence over new readers.
func (r ReadWrite) AcquireWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, count int, lease time.Duration,
	waits bool,
) (*Holder, error) {
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["write_acquire.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(count), milliseconds(lease), flag[waits], milliseconds(r.Bound),
		milliseconds(wire.WaiterTTL)))
}

// ReleaseWrite sets the number of write holds of owner to count. If count is above 0, owner keeps
// the write lock, and next and lease have no effect. If count is 0, owner loses the write lock and
// its precedence, and one of these things happens:
//
//   - If owner has read holds, owner remains a reader, other readers can enter, and Reading in the
//     result is true.
//   - If next is not "" and no reader of holdfast waits, ReleaseWrite hands the lock over to next
//     for lease, and To in the result is Successor. Next is the [wire.WriteField] of a waiter of
//     the same client.
//   - Otherwise the lock is free, and ReleaseWrite announces the lock. If readers have waited,
//     their turn begins.
//
// If owner did not hold the write lock, the lock does not change, and [Released].Held is false.
func (r ReadWrite) ReleaseWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, count int, next string,
	lease time.Duration,
) (Released, error) {
	turn := "0"
	if r.Bound > 0 {
		turn = milliseconds(readersTurn)
	}
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReaderKey(r.Lock),
		wire.ReadersTurnKey(r.Lock)}
	return released(scripts["write_release.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(count), wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll,
		publish[r.Channels], turn, next, milliseconds(lease)))
}

// ForceUnlock releases the lock of all its readers if mode is "read". If mode is "write",
// ForceUnlock releases the lock of its writer, including the read holds of the writer. ForceUnlock
// then announces the lock. If the lock is not held in this mode, ForceUnlock changes nothing, and
// [Released].Held is false.
func (r ReadWrite) ForceUnlock(ctx context.Context, c rueidis.CoreClient, mode string,
) (Released, error) {
	return released(scripts["readwrite_force_unlock.lua"].Run(ctx, c, []string{r.Lock}, mode,
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll, publish[r.Channels]))
}
