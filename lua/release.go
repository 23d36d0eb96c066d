package lua

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

var (
	release     = load("release.lua")
	forceUnlock = load("force_unlock.lua")
)

// The messages on a lock's channel.
const (
	// Unlocked says that the lock is free: one waiter may take it.
	Unlocked = "0"
	// UnlockedForAll says that every waiter should look.
	UnlockedForAll = "1"
)

// Announcement says how a release is made known to those who wait.
type Announcement struct {
	Channel string
	Message string
	Sharded bool // SPUBLISH instead of PUBLISH
}

func (a Announcement) verb() string {
	if a.Sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Released is the outcome of a release.
type Released struct {
	// Held is false when there was nothing to release: the owner did not hold the lock, or nobody did.
	Held bool
	// Refusal is the server's reason for not publishing the announcement, though the lock was released. "" if it did.
	// It begins with the error code, such as NOPERM, on every version of the server.
	Refusal string
	// Reading tells that the owner gave back a write lock and has read holds left.
	Reading bool
}

// Release leaves owner with the given hold count. With count 0 the owner loses the lock, whatever count it had, and
// the release is announced.
func Release(ctx context.Context, c rueidis.CoreClient, lock, owner string, count int, a Announcement) (Released, error) {
	return released(release.run(ctx, c, []string{lock},
		[]string{owner, strconv.Itoa(count), a.Channel, a.Message, a.verb()}))
}

// ForceUnlock frees the lock whoever holds it, and announces it if it was held.
func ForceUnlock(ctx context.Context, c rueidis.CoreClient, lock string, a Announcement) (Released, error) {
	return released(forceUnlock.run(ctx, c, []string{lock}, []string{a.Channel, a.Message, a.verb()}))
}

func released(reply rueidis.RedisResult) (Released, error) {
	values, err := reply.ToArray()
	if err != nil {
		return Released{}, Classify(err)
	}
	return outcomeOf(values)
}

// outcomeOf reads what the scripts say of one release.
func outcomeOf(values []rueidis.RedisMessage) (Released, error) {
	if err := sized(values, 2); err != nil {
		return Released{}, err
	}
	status, err := integer(values[0])
	if err != nil {
		return Released{}, err
	}
	refusal, err := text(values[1])
	if err != nil {
		return Released{}, err
	}
	return Released{Held: status >= 0, Refusal: withCode(refusal), Reading: status == 2}, nil
}
