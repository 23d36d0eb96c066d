package demo

import "time"

// part is what a process is told before it connects: its name, its lock, and what it does.
type part struct {
	Process string `json:"process"`
	Lock    string `json:"lock"`   // as shown
	Type    string `json:"type"`   // of the lock; "" is reentrant
	Prefix  string `json:"prefix"` // of all keys
	Server  server `json:"server"`

	// Nodes are the servers of a lock over a quorum. Everything else is on Server.
	Nodes []server `json:"nodes,omitempty"`
	// Accounts are the two that are locked together. The first one pays.
	Accounts []string `json:"accounts,omitempty"`

	// Sections is how often the process acquires the lock. In every NestEvery-th section it
	// acquires it again inside; 0 is never.
	Sections  int `json:"sections"`
	NestEvery int `json:"nestEvery"`

	// Wait, Lease and WatchdogLease are those of package rlock.
	Wait          time.Duration `json:"wait"`
	Lease         time.Duration `json:"lease"`
	WatchdogLease time.Duration `json:"watchdogLease"`

	// Inside is how long the process stays in a section once it has counted. Outside is the time
	// between two sections.
	Inside  time.Duration `json:"inside"`
	Outside time.Duration `json:"outside"`

	// Unlocked leaves out the lock. Everything else stays, also the checks.
	Unlocked bool `json:"unlocked"`
}

// The types of locks besides the reentrant one. Reading and writing are modes of one lock.
const (
	fair       = "fair"
	reading    = "read"
	writing    = "write"
	several    = "multi" // a MultiLock of fair locks, one for each account
	overQuorum = "red"   // a RedLock over the nodes
)

// untilCue, as Inside, lasts until a cue ends the section, or until the process dies.
const untilCue = time.Minute

// These functions return the keys of a scene: the lock itself, the counter that it protects, the
// marker of the process that is inside, and the set of readers.
func lockKey(prefix, lock string) string    { return prefix + lock }
func counterKey(prefix, lock string) string { return prefix + lock + ":counter" }
func markerKey(prefix, lock string) string  { return prefix + lock + ":inside" }
func readersKey(prefix, lock string) string { return prefix + lock + ":readers" }

// These return the keys of an account: its lock, and its balance.
func accountKey(prefix, account string) string { return prefix + account }
func balanceKey(prefix, account string) string { return prefix + account + ":balance" }

// keyLife bounds how long a counter or a marker stays in Redis if the demo cannot clean up.
const keyLife = time.Minute

// cue is what a process is told while it plays.
type cue struct {
	Do    string    `json:"do"`
	Start time.Time `json:"start,omitzero"` // with begin: when the clock started
}

const (
	begin = "begin" // play
	leave = "leave" // end the current section
)
