//go:build interop

package redisson_test

import (
	"fmt"
	"slices"
	"sync/atomic"

	"holdfast/internal/wire"
)

// target is a lock that either side can acquire: a kind, and its name or, for a MultiLock, names.
type target struct {
	kind  string
	names []string
}

// The kinds, by their names in the Java peer.
const (
	reentrant = "reentrant"
	fair      = "fair"
	fenced    = "fenced"
	read      = "read"
	write     = "write"
	spin      = "spin"
	multi     = "multi"
	red       = "red"

	nonReentrant     = "nonreentrant"
	nonReentrantFair = "nonreentrant-fair"
)

// queues reports whether waiters for the lock queue in Redis.
func (l target) queues() bool { return l.kind == fair || l.kind == nonReentrantFair }

// parts returns the locks of a target: those to inspect and to unlock by force.
func (l target) parts() []target {
	if l.kind != multi {
		return []target{l}
	}
	parts := make([]target, len(l.names))
	for i, name := range l.names {
		parts[i] = target{reentrant, []string{name}}
	}
	return parts
}

// name returns the name of a lock that has one.
func (l target) name() string { return l.names[0] }

// channels returns those on which a waiter for the lock may listen; each waiter for a fair lock has
// its own.
func (l target) channels() []string {
	channels := make([]string, len(l.names))
	for i, name := range l.names {
		switch l.kind {
		case read, write:
			channels[i] = wire.RWChannel(name)
		default:
			channels[i] = wire.Channel(name)
		}
	}
	return channels
}

// names counts the locks of this run.
var names atomic.Int64

// newName returns an unused name.
func newName() string { return fmt.Sprint("lock-", names.Add(1)) }

// contest is a lock that one owner holds while another wants a lock that it excludes.
type contest struct{ hold, want target }

// namedContest makes contests; each call makes new locks.
type namedContest struct {
	name string
	make func() contest
}

// contests has all contests for locks that the release beside has.
var contests = slices.DeleteFunc([]namedContest{
	{"reentrant", func() contest { return both(reentrant) }},
	{"fair", func() contest { return both(fair) }},
	{"fenced", func() contest { return both(fenced) }},
	{"writer and writer", func() contest { return both(write) }},
	{"reader and writer", func() contest {
		name := newName()
		return contest{target{read, []string{name}}, target{write, []string{name}}}
	}},
	{"writer and reader", func() contest {
		name := newName()
		return contest{target{write, []string{name}}, target{read, []string{name}}}
	}},
	{"multi", func() contest {
		a, shared, b := newName(), newName(), newName()
		return contest{target{multi, []string{a, shared}}, target{multi, []string{b, shared}}}
	}},
	{"multi and reentrant", func() contest {
		a, shared := newName(), newName()
		return contest{target{multi, []string{a, shared}}, target{reentrant, []string{shared}}}
	}},
	{"reentrant and multi", func() contest {
		a, shared := newName(), newName()
		return contest{target{reentrant, []string{shared}}, target{multi, []string{shared, a}}}
	}},
}, func(c namedContest) bool { return !beside.has(c.make().hold.kind) })

// both returns the contest for one lock.
func both(kind string) contest {
	l := target{kind, []string{newName()}}
	return contest{l, l}
}
