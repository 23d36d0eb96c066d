package demo

import "time"

// part is what a process is told before it connects: who it is and what it does with which lock.
type part struct {
	Process string `json:"process"`
	Lock    string `json:"lock"`   // as shown
	Type    string `json:"type"`   // of the lock; "" is reentrant
	Prefix  string `json:"prefix"` // of all keys
	Server  server `json:"server"`

	// Nodes are the servers on which a quorum has the lock. All else is on Server.
	Nodes []server `json:"nodes,omitempty"`
	// Accounts are the two whose locks are to be had together, the first being the one that pays.
	Accounts []string `json:"accounts,omitempty"`

	// Sections is how often it takes the lock, and NestEvery in which of them it takes it again inside; 0 is never.
	Sections  int `json:"sections"`
	NestEvery int `json:"nestEvery"`

	// Wait, Lease and WatchdogLease are those of package rlock.
	Wait          time.Duration `json:"wait"`
	Lease         time.Duration `json:"lease"`
	WatchdogLease time.Duration `json:"watchdogLease"`

	// Inside is how long it stays in a section once it has counted, and Outside between two sections.
	Inside  time.Duration `json:"inside"`
	Outside time.Duration `json:"outside"`

	// Unlocked leaves out the lock. All else stays, also the checks.
	Unlocked bool `json:"unlocked"`
}

// The types of locks besides the reentrant one. Reading and writing are the sides of one lock.
const (
	fair       = "fair"
	reading    = "read"
	writing    = "write"
	several    = "multi" // a MultiLock of fair locks, one for each account
	overQuorum = "red"   // a RedLock over the nodes
)

// stay is an Inside that ends with a cue, or with the process.
const stay = time.Minute

// The keys of a lock's scene: the lock itself, the counter that it protects, the marker of who is inside, and the set of
// those who read.
func lockKey(prefix, lock string) string    { return prefix + lock }
func counterKey(prefix, lock string) string { return prefix + lock + ":counter" }
func markerKey(prefix, lock string) string  { return prefix + lock + ":inside" }
func readersKey(prefix, lock string) string { return prefix + lock + ":readers" }

// The keys of an account: its lock, and what is in it.
func accountKey(prefix, account string) string { return prefix + account }
func balanceKey(prefix, account string) string { return prefix + account + ":balance" }

// keyLife bounds how long a counter or a marker stays in Redis after a demo that could not clean up.
const keyLife = time.Minute

// cue is what a process is told while it plays.
type cue struct {
	Do    string    `json:"do"`
	Start time.Time `json:"start,omitzero"` // with begin: when the clock started
}

const (
	begin = "begin" // play
	leave = "leave" // end the section you are in
)
