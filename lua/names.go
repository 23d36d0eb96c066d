package lua

import (
	"errors"
	"fmt"
	"strings"
)

// ErrCrossSlot is the error for a name whose keys and channel a cluster would put in different
// slots.
var ErrCrossSlot = errors.New("keys would not share a slot")

// Prefix puts p before the name n so that both share a cluster slot: "p:n" when n has a "{"
// already, else "p:{n}". It is Redisson's rule, which looks for the brace only; see [CheckSlots]
// for the names it gets wrong.
func Prefix(p, n string) string {
	if strings.Contains(n, "{") {
		return p + ":" + n
	}
	return p + ":{" + n + "}"
}

// alone puts p before the name n so that both share a cluster slot, and no other name gets the
// same: [Prefix] makes one of "n" and "{n}", which are two locks.
func alone(p, n string) string {
	if strings.Contains(n, "{") {
		return p + "::" + n
	}
	return Prefix(p, n)
}

// Suffix puts s behind the name n so that both share a cluster slot: "n:s" when n has a "{"
// already, else "{n}:s".
func Suffix(n, s string) string {
	if strings.Contains(n, "{") {
		return n + ":" + s
	}
	return "{" + n + "}:" + s
}

// Channel is the channel on which the release of the reentrant lock n is announced.
func Channel(n string) string {
	return Prefix("redisson_lock__channel", n)
}

// RWChannel is the channel on which releases of both sides of the read-write lock n are announced.
func RWChannel(n string) string { return Prefix("redisson_rwlock", n) }

// presentChannel shows which clients may register for the lock n.
func presentChannel(n string) string { return Prefix("holdfast_lock_present", n) }

// FairChannel is the channel on which the waiter owner of the fair lock n is told that it is its
// turn.
func FairChannel(n, owner string) string { return Channel(n) + ":" + owner }

// Keys beside the one that a lock is named after. Those of Redisson begin with redisson; the others
// only this library knows.
func scoresKey(n string) string      { return Prefix("redisson_lock_timeout", n) }
func turnKey(n string) string        { return Prefix("holdfast_lock_turn", n) }
func budgetsKey(n string) string     { return Prefix("holdfast_lock_budget", n) }
func waitersKey(n string) string     { return alone("holdfast_lock_waiters", n) }
func tokenKey(n string) string       { return Prefix("redisson_lock_token", n) }
func writerKey(n string) string      { return Prefix("holdfast_rwlock_writer", n) }
func readerKey(n string) string      { return Prefix("holdfast_rwlock_reader", n) }
func readersTurnKey(n string) string { return Prefix("holdfast_rwlock_turn", n) }

// QueueKey returns the key of the queue of the fair lock n. It is the same for "n" and "{n}".
func QueueKey(n string) string { return Prefix("redisson_lock_queue", n) }

// holdsKey is what the keys of an owner's read holds begin with; their number follows. For every
// owner it begins with Suffix(n, "").
func holdsKey(n, owner string) string { return Suffix(n, owner) + ":rwlock_timeout" }

// WriteField is the field of the hash of a read-write lock that has the owner's write holds.
func WriteField(owner string) string { return owner + writeSuffix }

const writeSuffix = ":write"

// Related are the names beside n itself that a lock of any kind derives from n: keys and a channel.
func Related(n string) []string {
	return []string{
		Channel(n),
		RWChannel(n),
		presentChannel(n),
		waitersKey(n),
		QueueKey(n),
		scoresKey(n),
		turnKey(n),
		budgetsKey(n),
		tokenKey(n),
		writerKey(n),
		readerKey(n),
		readersTurnKey(n),
		holdsKey(n, "owner"),
	}
}

// CheckSlots refuses a lock name that cannot work on a cluster: one whose related names, which are
// derived from it with [Prefix] and [Suffix], fall into another slot than the name itself. The
// error wraps [ErrCrossSlot].
func CheckSlots(n string, related ...string) error {
	slot := Slot(n)
	for _, r := range related {
		if other := Slot(r); other != slot {
			return fmt.Errorf("name %q is in slot %d but %q in slot %d: %w; "+
				"use a name without braces, or one with a complete hash tag such as {%s}",
				n, slot, r, other, ErrCrossSlot, strings.Map(withoutBrace, n))
		}
	}
	return nil
}

func withoutBrace(r rune) rune {
	if r == '{' || r == '}' {
		return -1
	}
	return r
}
