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
	// Bound is how long at a time new readers wait for a waiting writer. With 0, readers never wait
	// for a writer, and the scripts only use keys that Redisson also uses.
	Bound time.Duration
}

const (
	// readersTurn is how long readers that waited for a writer may pass, and writers step back,
	// once it has left: enough for a message to arrive and a command to be sent. It ends 10 ms
	// after the last of them has left.
	readersTurn = 100 * time.Millisecond
)

// AcquireRead acquires the read lock for owner, and sets its hold count in the read lock to count.
// If another owner prevents that, AcquireRead returns that owner, and otherwise nil. Set waits if
// the caller is going to wait for the lock, and waited if it has waited already. A reader that has
// waited may go ahead once a writer has left.
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

// ReleaseRead sets the hold count of owner in the read lock to count. The remaining holds keep the
// longest lease that owner had.
func (r ReadWrite) ReleaseRead(ctx context.Context, c rueidis.CoreClient, owner string, count int,
) (Released, error) {
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner), wire.ReadersTurnKey(r.Lock)}
	return released(scripts["read_release.lua"].Run(ctx, c, keys, owner, strconv.Itoa(count),
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.Unlocked, publish[r.Channels],
		milliseconds(LongestSleep)))
}

// AcquireWrite acquires the write lock for owner, and sets its hold count in the write lock to
// count. If another owner prevents that, AcquireWrite returns that owner, and otherwise nil. An
// owner that holds only the read lock cannot acquire the write lock, so AcquireWrite then returns
// owner itself.
func (r ReadWrite) AcquireWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, count int, lease time.Duration,
	waits bool,
) (*Holder, error) {
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["write_acquire.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(count), milliseconds(lease), flag[waits], milliseconds(r.Bound),
		milliseconds(wire.WaiterTTL)))
}

// ReleaseWrite sets the hold count of owner in the write lock to count. If count is 0, owner loses
// the write lock, and readers no longer wait for it. If owner also holds the read lock, it remains
// a reader. Otherwise, if no reader of holdfast waits, the write lock passes for lease to the owner
// named next, in the form of [wire.WriteField]. If next is "", the lock becomes free.
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
// ForceUnlock releases the lock of its writer, including the read holds of the writer.
func (r ReadWrite) ForceUnlock(ctx context.Context, c rueidis.CoreClient, mode string,
) (Released, error) {
	return released(scripts["readwrite_force_unlock.lua"].Run(ctx, c, []string{r.Lock}, mode,
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll, publish[r.Channels]))
}
