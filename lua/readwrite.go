package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// ReadWrite sends the commands of a read-write lock. All clients of a lock must use the same
// settings.
type ReadWrite struct {
	Lock     string        // its name
	Channels wire.Channels // on which waiters listen
	// Bound is how long new readers wait at a time for a writer that waits. With 0, readers never wait
	// for a writer, and no key of holdfast is used.
	Bound time.Duration
}

const (
	// readersTurn is how long readers that waited for a writer may pass, and writers step back,
	// once it has left: enough for a message to arrive and a command to be sent. It ends 10 ms
	// after the last of them has left.
	readersTurn = 100 * time.Millisecond
)

// AcquireRead acquires the read hold with the given number for owner. If another owner is in the
// way, AcquireRead returns that owner, and otherwise nil. Set waits if the caller waits for the
// lock, and waited if the caller has waited already. A reader that has waited may pass after a
// writer has left.
func (r ReadWrite) AcquireRead(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, lease time.Duration, waits,
	waited bool,
) (*Holder, error) {
	waiting := flag[waits]
	if waits && waited {
		waiting = "2"
	}
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner),
		wire.WriterKey(r.Lock), wire.ReaderKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["read_acquire.lua"].Run(ctx, c, keys, owner, strconv.Itoa(number),
		milliseconds(lease), waiting, milliseconds(r.Bound), milliseconds(wire.WaiterTTL)))
}

// ReleaseRead leaves owner with the given number of read holds. These last for as long as the
// longest lease of its earlier read holds.
func (r ReadWrite) ReleaseRead(ctx context.Context, c rueidis.CoreClient, owner string, number int,
) (Released, error) {
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner), wire.ReadersTurnKey(r.Lock)}
	return released(scripts["read_release.lua"].Run(ctx, c, keys, owner, strconv.Itoa(number),
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.Unlocked, publish[r.Channels],
		milliseconds(LongestSleep)))
}

// AcquireWrite acquires the write lock for owner, with the given number of holds. If another owner
// is in the way, AcquireWrite returns that owner, and otherwise nil. An owner that only reads is in
// its own way.
func (r ReadWrite) AcquireWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, lease time.Duration,
	waits bool,
) (*Holder, error) {
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["write_acquire.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(number), milliseconds(lease), flag[waits], milliseconds(r.Bound),
		milliseconds(wire.WaiterTTL)))
}

// ReleaseWrite leaves owner with the given number of write holds. With a number of 0, owner loses
// the write lock, and readers no longer wait for owner. If owner has read holds, owner remains a
// reader. If owner has no read holds and no reader of holdfast waits, the write lock passes for
// lease to the owner with the wire.WriteField next. If next is "", the lock becomes free.
func (r ReadWrite) ReleaseWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, next string,
	lease time.Duration,
) (Released, error) {
	turn := "0"
	if r.Bound > 0 {
		turn = milliseconds(readersTurn)
	}
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReaderKey(r.Lock),
		wire.ReadersTurnKey(r.Lock)}
	return released(scripts["write_release.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(number), wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll,
		publish[r.Channels], turn, next, milliseconds(lease)))
}

// ForceUnlock releases the lock of all holders in a mode, as in State. The mode "read" means all
// readers, and "write" means the writer and its read holds.
func (r ReadWrite) ForceUnlock(ctx context.Context, c rueidis.CoreClient, mode string,
) (Released, error) {
	return released(scripts["readwrite_force_unlock.lua"].Run(ctx, c, []string{r.Lock}, mode,
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll, publish[r.Channels]))
}
