// Package wire has everything that the clients of a lock agree on besides the scripts: the names of
// keys, hash fields and channels, the kinds of channels, and the messages. Most of these come from
// Redisson, and must not change. Only holdfast knows names that begin with holdfast.
package wire

import (
	"fmt"
	"regexp"
	"strings"
)

// Prefix puts p before the name n so that both share a cluster slot: "p:n" if n has a "{", else
// "p:{n}". Redisson has the same rule. [CheckSlots] finds the names for which the rule is wrong.
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

// Keys beside the key that has the name of the lock. Keys of Redisson begin with redisson.

// ScoresKey returns the key that says when Redisson drops owners from the queue of the fair lock n.
func ScoresKey(n string) string { return Prefix("redisson_lock_timeout", n) }

// TurnKey returns the key that says which owner may take the fair lock n, and until when.
func TurnKey(n string) string { return Prefix("holdfast_lock_turn", n) }

// BudgetsKey returns the key that says when owners leave the queue of the fair lock n.
func BudgetsKey(n string) string { return Prefix("holdfast_lock_budget", n) }

// TokenKey returns the key of the fencing tokens of the fenced lock n.
func TokenKey(n string) string { return Prefix("redisson_lock_token", n) }

// WriterKey returns the key of the writer that waits for the read-write lock n.
func WriterKey(n string) string { return Prefix("holdfast_rwlock_writer", n) }

// ReaderKey returns the key that exists while readers wait for a writer of the read-write lock n.
func ReaderKey(n string) string { return Prefix("holdfast_rwlock_reader", n) }

// ReadersTurnKey returns the key that exists while readers that waited for the read-write lock n
// have their turn.
func ReadersTurnKey(n string) string { return Prefix("holdfast_rwlock_turn", n) }

// WaitersKey returns the key of the waiters of the lock n. Unlike the other keys, this key differs
// for "n" and "{n}", which are two locks.
func WaitersKey(n string) string {
	if strings.Contains(n, "{") {
		return "holdfast_lock_waiters::" + n
	}
	return Prefix("holdfast_lock_waiters", n)
}

// QueueKey returns the key of the queue of the fair lock n. The key is the same for "n" and "{n}".
func QueueKey(n string) string { return Prefix("redisson_lock_queue", n) }

// HoldsKey returns the prefix of the keys of an owner's read holds; their number follows. For every
// owner it begins with Suffix(n, "").
func HoldsKey(n, owner string) string { return Suffix(n, owner) + ":rwlock_timeout" }

// WriteField returns the field for the owner's write holds in the hash of a read-write lock.
func WriteField(owner string) string { return owner + WriteSuffix }

// WriteSuffix is what [WriteField] appends.
const WriteSuffix = ":write"

// OnceKey returns the key of the result that package once stores under the lock n.
func OnceKey(n string) string { return Prefix("holdfast_once", n) }

// ClientKey returns the key that says who the client with that id is. The id is the part of an
// owner before the colon. Clients of Redisson have no such key.
func ClientKey(client string) string { return Prefix("holdfast_client", client) }

// EpochKey is the key that says since when a server of a RedLock has had its data. Each server has
// one such key, which never expires.
const EpochKey = "holdfast_redlock_epoch"

// Related returns the names of keys and channels that a lock of any kind derives from n.
func Related(n string) []string {
	return []string{
		Channel(n), RWChannel(n), presentChannel(n), WaitersKey(n), QueueKey(n), ScoresKey(n),
		TurnKey(n), BudgetsKey(n), TokenKey(n), WriterKey(n), ReaderKey(n), ReadersTurnKey(n),
		OnceKey(n), HoldsKey(n, "owner"),
	}
}

// derived has the beginnings of the names that holdfast and Redisson derive from the name of a lock
// by [Prefix].
var derived = []string{
	"redisson_lock__channel:", "redisson_rwlock:", "redisson_lock_queue:", "redisson_lock_timeout:",
	"redisson_lock_token:", "redisson_unlock_latch:", "holdfast_lock_present:",
	"holdfast_lock_waiters:", "holdfast_lock_turn:", "holdfast_lock_budget:",
	"holdfast_rwlock_writer:", "holdfast_rwlock_reader:", "holdfast_rwlock_turn:", "holdfast_client:",
	"holdfast_classic:", "holdfast_once:",
}

// readHold matches the key of a read hold.
var readHold = regexp.MustCompile(
	`(?s)\{.*:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:-?\d+:rwlock_timeout:\d+$`)

// CheckDerived returns an error if a lock name is also the name of a key or channel of another lock
// or a client. It accepts names without a "{", because every derived name has a "{".
func CheckDerived(n string) error {
	if n == EpochKey {
		return fmt.Errorf("%q is the key with which RedLocks detect a restart; use another "+
			"name", n)
	}
	if !strings.Contains(n, "{") {
		return nil
	}
	for _, prefix := range derived {
		if strings.HasPrefix(n, prefix) {
			return fmt.Errorf("%q begins with %s, which holdfast and Redisson use for their own "+
				"keys and channels; use another name", n, prefix)
		}
	}
	if strings.Contains(n, ":rwlock_timeout:") && readHold.MatchString(n) {
		return fmt.Errorf("%q is the key of a read hold of another lock; use another name", n)
	}
	return nil
}
