package lua

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// Keeping says which lock [Keep] keeps taken, and for how long. The lock may be of any kind but a
// read lock.
type Keeping struct {
	Held
	// By is the owner that keeps the lock, in the same form as Owner. Nobody may use this name for
	// anything else.
	By string
	// For is how long the lock stays taken.
	For time.Duration
	// Fair is set for a fair lock, and ReadWrite for a write lock.
	Fair, ReadWrite bool
	// Channels selects the kind of channels on which waiters listen.
	Channels wire.Channels
}

// Keep ends all holds of an owner without freeing the lock. The lock passes to another owner that
// nobody is, and becomes free when k.For is over, whatever lease it had before. Keep notifies the
// waiters, or the head of the queue of a fair lock, so that they ask again and learn how long the
// lock stays taken.
//
// If the lock is kept already, because the command is repeated, Keep never makes the lock last
// longer. If neither owner holds the lock, the lock does not change, and [Released].Held is false.
func Keep(ctx context.Context, c rueidis.CoreClient, k Keeping) (Released, error) {
	keys, channel, message := []string{k.Lock}, wire.Channel(k.Lock), wire.Unlocked
	switch {
	case k.Fair:
		keys = append(keys, wire.QueueKey(k.Lock))
	case k.ReadWrite:
		channel, message = wire.RWChannel(k.Lock), wire.UnlockedForAll
	}
	return released(scripts["keep.lua"].Run(ctx, c, keys, k.Owner, k.By, milliseconds(k.For), channel,
		message, publish[k.Channels]))
}
