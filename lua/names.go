package lua

import (
	"fmt"
	"regexp"
	"strings"
)

// Prefix puts p before the name n so that both share a cluster slot: "p:n" when n has a "{", else
// "p:{n}". It is Redisson's rule; [CheckSlots] finds the names for which it is wrong.
func Prefix(p, n string) string {
	if strings.Contains(n, "{") {
		return p + ":" + n
	}
	return p + ":{" + n + "}"
}

// Suffix puts s behind the name n in the same way: "n:s" when n has a "{", else "{n}:s".
func Suffix(n, s string) string {
	if strings.Contains(n, "{") {
		return n + ":" + s
	}
	return "{" + n + "}:" + s
}

// Channel returns the channel on which releases of the reentrant lock n are announced.
func Channel(n string) string { return Prefix("redisson_lock__channel", n) }

// RWChannel is [Channel] for the read-write lock n, in both modes.
func RWChannel(n string) string { return Prefix("redisson_rwlock", n) }

// presentChannel returns the channel on which the clients listen that may register for the lock n.
func presentChannel(n string) string { return Prefix("holdfast_lock_present", n) }

// FairChannel returns the channel on which an owner that waits for the fair lock n gets its turn.
func FairChannel(n, owner string) string { return Channel(n) + ":" + owner }

// Keys beside the one that a lock is named after. Those of Redisson begin with redisson; the others
// are known only to this library.
func scoresKey(n string) string      { return Prefix("redisson_lock_timeout", n) }
func turnKey(n string) string        { return Prefix("holdfast_lock_turn", n) }
func budgetsKey(n string) string     { return Prefix("holdfast_lock_budget", n) }
func tokenKey(n string) string       { return Prefix("redisson_lock_token", n) }
func writerKey(n string) string      { return Prefix("holdfast_rwlock_writer", n) }
func readerKey(n string) string      { return Prefix("holdfast_rwlock_reader", n) }
func readersTurnKey(n string) string { return Prefix("holdfast_rwlock_turn", n) }

// waitersKey returns the key of the waiters of the lock n. Unlike the others it differs for "n" and
// "{n}", which are two locks.
func waitersKey(n string) string {
	if strings.Contains(n, "{") {
		return "holdfast_lock_waiters::" + n
	}
	return Prefix("holdfast_lock_waiters", n)
}

// QueueKey returns the key of the queue of the fair lock n. It is the same for "n" and "{n}".
func QueueKey(n string) string { return Prefix("redisson_lock_queue", n) }

// holdsKey returns the prefix of the keys of an owner's read holds; their number follows. For every
// owner it begins with Suffix(n, "").
func holdsKey(n, owner string) string { return Suffix(n, owner) + ":rwlock_timeout" }

// WriteField returns the field for the owner's write holds in the hash of a read-write lock.
func WriteField(owner string) string { return owner + writeSuffix }

const writeSuffix = ":write"

// Related returns the names of keys and channels that a lock of any kind derives from n.
func Related(n string) []string {
	return []string{
		Channel(n), RWChannel(n), presentChannel(n), waitersKey(n), QueueKey(n), scoresKey(n),
		turnKey(n), budgetsKey(n), tokenKey(n), writerKey(n), readerKey(n), readersTurnKey(n),
		holdsKey(n, "owner"),
	}
}

// derived has what the names begin with that this library and Redisson derive from the name of a
// lock by [Prefix].
var derived = []string{
	"redisson_lock__channel:", "redisson_rwlock:", "redisson_lock_queue:", "redisson_lock_timeout:",
	"redisson_lock_token:", "redisson_unlock_latch:", "holdfast_lock_present:",
	"holdfast_lock_waiters:", "holdfast_lock_turn:", "holdfast_lock_budget:",
	"holdfast_rwlock_writer:", "holdfast_rwlock_reader:", "holdfast_rwlock_turn:", "holdfast_client:",
	"holdfast_classic:",
}

// readHold matches the key of a read hold.
var readHold = regexp.MustCompile(
	`(?s)\{.*:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:-?\d+:rwlock_timeout:\d+$`)

// CheckDerived returns an error if a lock name is also the name of a key or channel of another lock
// or a client. It accepts names without a "{", because every derived name has a "{".
func CheckDerived(n string) error {
	if n == EpochKey {
		return fmt.Errorf("%q is the key in which RedLocks record since when a server has had "+
			"its data; use another name", n)
	}
	if !strings.Contains(n, "{") {
		return nil
	}
	for _, prefix := range derived {
		if strings.HasPrefix(n, prefix) {
			return fmt.Errorf("%q begins with %s, like keys and channels that holdfast or Redisson "+
				"makes for locks and clients; use another name", n, prefix)
		}
	}
	if strings.Contains(n, ":rwlock_timeout:") && readHold.MatchString(n) {
		return fmt.Errorf("%q is the key of a read hold of another lock; use another name", n)
	}
	return nil
}

// CheckSlots returns an error for a lock name that cannot work on a cluster, because a name that is
// derived from it with [Prefix] or [Suffix] is in another slot.
func CheckSlots(n string, related ...string) error {
	slot := Slot(n)
	for _, r := range related {
		if other := Slot(r); other != slot {
			return fmt.Errorf("name %q is in slot %d but %q in slot %d: keys would not share a "+
				"slot; use a name without braces, or one with a complete hash tag such as {%s}",
				n, slot, r, other, strings.NewReplacer("{", "", "}", "").Replace(n))
		}
	}
	return nil
}

// Slot returns the cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key when
// it has none, modulo 16384. The hash tag is the text between the first "{" and the first "}" after
// it, if not empty. Source: Redis Cluster specification, "Key distribution model" and "Hash tags".
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
