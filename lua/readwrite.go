package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// ReadWrite sends the commands of a read-write lock. Clients that share it use the same settings.
type ReadWrite struct {
	Lock     string        // its name
	Channels wire.Channels // on which waiters listen
	// Bound is how long at a time new readers step back for a writer that waits. With 0 nobody
	// steps back, and no key of this library's own is used.
	Bound time.Duration
}

const (
	// readersTurn is how long readers that waited for a writer may pass, and writers step back,
	// once it has left: enough for a message to arrive and a command to be sent. It ends 10 ms
	// after the last of them has left.
	readersTurn = 100 * time.Millisecond
)

// AcquireRead takes the read hold with the given number for owner, or returns who is in the way;
// nil means that the owner has it. waits reports whether the owner waits. waited reports whether it
// waited already: it may then pass when a writer has left.
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

// ReleaseRead leaves owner with the given number of read holds. They last as long as the longest of
// those it had.
func (r ReadWrite) ReleaseRead(ctx context.Context, c rueidis.CoreClient, owner string, number int,
) (Released, error) {
	keys := []string{r.Lock, wire.HoldsKey(r.Lock, owner), wire.ReadersTurnKey(r.Lock)}
	return released(scripts["read_release.lua"].Run(ctx, c, keys, owner, strconv.Itoa(number),
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.Unlocked, publish[r.Channels],
		milliseconds(MaxNap)))
}

// AcquireWrite takes the write lock for owner with the given number of holds, or returns who is in
// the way; nil means that the owner has it. An owner that only reads is in its own way.
func (r ReadWrite) AcquireWrite(
	ctx context.Context, c rueidis.CoreClient, owner string, number int, lease time.Duration,
	waits bool,
) (*Holder, error) {
	keys := []string{r.Lock, wire.WriterKey(r.Lock), wire.ReadersTurnKey(r.Lock)}
	return acquired(scripts["write_acquire.lua"].Run(ctx, c, keys, wire.WriteField(owner),
		strconv.Itoa(number), milliseconds(lease), flag[waits], milliseconds(r.Bound),
		milliseconds(wire.WaiterTTL)))
}

// ReleaseWrite leaves owner with the given number of write holds. With 0 it loses the write lock,
// whatever number it had, and readers no longer step back for it. If it has read holds it is then a
// reader. If not, and no reader of this library waits, the write lock passes, for lease, to the
// owner with the [wire.WriteField] next; "" is none.
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

// ForceUnlock frees the lock of those that hold it in a mode, as in [State]: of all its readers, or
// of its writer and the writer's read holds.
func (r ReadWrite) ForceUnlock(ctx context.Context, c rueidis.CoreClient, mode string,
) (Released, error) {
	return released(scripts["readwrite_force_unlock.lua"].Run(ctx, c, []string{r.Lock}, mode,
		wire.Suffix(r.Lock, ""), wire.RWChannel(r.Lock), wire.UnlockedForAll, publish[r.Channels]))
}
