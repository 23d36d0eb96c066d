// Package locks finds out what Redis has of locks of all kinds, also of those of Redisson.
package locks

import (
	"time"

	"holdfast/internal/identity"
	"holdfast/internal/survey"
)

// Lock is what Redis has of one lock at one moment. A lock that is free and has no waiters has
// neither holders nor waiters. Redis does not know of all waiters: see [survey.Wait].
type Lock struct {
	Name    string
	Kind    survey.Kind
	Holders []Holder // several if they read
	Waiters []Waiter // that Redis knows of; those of a fair lock in order, else the longest first
	// MoreHolders and MoreWaiters are how many are not in Holders and Waiters, because there are
	// very many: see [Lock.Waiting].
	MoreHolders, MoreWaiters int
	// TTL is what is left of the lease: 0 if the lock is free, [rlock.NoExpiry] if it never expires.
	TTL   time.Duration
	Token int64  // the last one of a fenced lock, else 0
	Node  string // the address of the node, on a cluster
	// Subscribers is how many connections listen for its release; -1 if it is not known. Only Inspect
	// counts them, if the ACL allows it.
	Subscribers int
}

// Holder is an owner that holds a lock.
type Holder struct {
	Owner  string // "<client id>:<number>"
	Count  int    // levels
	Mode   string // "read" or "write" of a read-write lock, else ""
	Client Client
}

// Waiter is an owner that waits for a lock.
type Waiter struct {
	Owner  string        // "" for readers, of which Redis does not know who and how many they are
	Since  time.Time     // zero if not known, as in the queue of a fair lock
	Until  time.Time     // when it is dropped from the queue of a fair lock; zero if not known
	Lease  time.Duration // for which it will get the lock, if it is registered
	Mode   string        // "read" or "write" of a read-write lock, else ""
	Client Client
}

// Waiting returns how many owners wait, as far as Redis knows.
func (l Lock) Waiting() int { return len(l.Waiters) + l.MoreWaiters }

// Holding returns how many owners hold the lock.
func (l Lock) Holding() int { return len(l.Holders) + l.MoreHolders }

// Mode returns the mode of a read-write lock that is held, "write" for a writer that reads as well.
// Else it is "".
func (l Lock) Mode() (mode string) {
	for _, h := range l.Holders {
		mode = max(mode, h.Mode)
	}
	return mode
}

// Client is the client of an owner.
type Client struct {
	ID                string
	identity.Identity // zero if it did not tell Redis who it is; clients of Redisson do not
	// Held is since when it holds its only lock, as holdfast run records; zero if not known.
	Held time.Time
}

// Known reports whether it told Redis who it is.
func (c Client) Known() bool { return c.Identity != identity.Identity{} }
