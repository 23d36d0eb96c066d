package multilock

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"holdfast/internal/hooks"
	"holdfast/lua"
	"holdfast/rlock"
)

// part is one of the locks of a [Lock].
type part struct {
	rlock.Locker
	plain    *rlock.Lock // the same, if it is a lock of package rlock; else nil
	batch    hooks.Batch // equal for parts that one script can acquire
	identity hooks.Identity
}

// sortedParts returns the parts of all the locks, each once, ordered by (server, name). Every
// process acquires in this order, which rules out a deadlock: in a circle of waiters, one would
// hold the last of the locks they wait for, and wait for an earlier one.
//
// On a cluster the slot comes before the name, to make the parts of a batch neighbours.
func sortedParts(locks []rlock.Locker) ([]part, error) {
	parts, err := flatten(nil, locks)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: no locks", rlock.ErrInvalid)
	}
	slices.SortStableFunc(parts,
		func(a, b part) int { return compareIdentities(a.identity, b.identity) })
	parts = slices.CompactFunc(parts, sameLock)
	for i, p := range parts[1:] {
		if err := checkNeighbours(parts[i], p); err != nil {
			return nil, err
		}
	}
	if err := checkQueues(parts); err != nil {
		return nil, err
	}
	return parts, checkServers(parts)
}

// flatten appends the locks to parts, and replaces MultiLocks by their parts.
func flatten(parts []part, locks []rlock.Locker) ([]part, error) {
	for _, l := range locks {
		if isNil(l) {
			return nil, fmt.Errorf("%w: one of the locks is nil", rlock.ErrInvalid)
		}
		switch l := l.(type) {
		case *Lock:
			if l.invalid != nil {
				return nil, l.invalid
			}
			parts = append(parts, l.parts...)
		case *rlock.Lock:
			p := part{Locker: l, plain: l, batch: hook.Batch(l), identity: hook.Identity(l)}
			parts = append(parts, p)
		default:
			id := hooks.Identity{Name: l.Name(), Kind: fmt.Sprintf("%T", l)}
			p := part{Locker: l, identity: id}
			if named, ok := l.(interface{ Server() string }); ok {
				p.identity.Server = named.Server()
				p.identity.Client = "of " + p.identity.Server // no client has this id
				if p.identity.Server == "" {
					p.identity.Client += strconv.Itoa(len(parts)) // it may be anywhere
				}
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// isNil reports whether l is nil or a nil pointer.
func isNil(l rlock.Locker) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// sameLock reports whether two parts are one lock.
func sameLock(a, b part) bool {
	if a.plain != nil && b.plain != nil {
		return a.identity == b.identity
	}
	return reflect.ValueOf(a.Locker).Comparable() && reflect.ValueOf(b.Locker).Comparable() &&
		a.Locker == b.Locker
}

func compareIdentities(a, b hooks.Identity) int {
	return cmp.Or(
		cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Slot, b.Slot),
		cmp.Compare(a.Name, b.Name),
		compareBool(a.Shared, b.Shared), // write before read: a writer may read, not vice versa
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Client, b.Client),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// checkNeighbours refuses two parts, next to each other in the order, that exclude each other even
// for one owner.
func checkNeighbours(a, b part) error {
	if a.plain == nil || b.plain == nil || a.identity.Server != b.identity.Server ||
		a.identity.Name != b.identity.Name {
		return nil
	}
	if a.identity.Client != b.identity.Client {
		if a.identity.Server == "" {
			return nil // checkServers refuses them
		}
		return fmt.Errorf("%w: lock %q on %s through two clients, which keep each other out",
			rlock.ErrInvalid, a.identity.Name, a.identity.Server)
	}
	if a.identity.Kind != b.identity.Kind {
		return fmt.Errorf("%w: lock %q as two kinds, which keep each other out", rlock.ErrInvalid,
			a.identity.Name)
	}
	return nil
}

// checkQueues refuses fair locks that share a queue: Redisson's key names give one queue to "x" and
// "{x}". An owner that holds one of them and waits for the other might queue behind a waiter for
// the first.
func checkQueues(parts []part) error {
	type queue struct{ client, key string }
	names := make(map[queue]string)
	for _, p := range parts {
		if p.plain == nil || p.identity.Kind != "fair" {
			continue
		}
		q := queue{p.identity.Client, lua.QueueKey(p.identity.Name)}
		if other, taken := names[q]; taken {
			return fmt.Errorf(
				"%w: fair locks %q and %q share a queue by their names: "+
					"use another name for one of them",
				rlock.ErrInvalid,
				other,
				p.identity.Name,
			)
		}
		names[q] = p.identity.Name
	}
	return nil
}

// checkServers refuses locks on several Redis servers of which one has no name. Other processes
// might order the servers differently, and a deadlock would be possible.
func checkServers(parts []part) error {
	first, several, unnamed := "", false, ""
	for _, p := range parts {
		if p.identity.Client == "" {
			continue // a Locker without the method Server
		}
		if first == "" {
			first = p.identity.Client
		}
		several = several || p.identity.Client != first
		if p.identity.Server == "" {
			unnamed = p.identity.Name
		}
	}
	if several && unnamed != "" {
		return fmt.Errorf(
			"%w: locks on several Redises are taken in the order of their servers' names, "+
				"and the server of %q has none: set rlock.Options.Server, in all processes alike",
			rlock.ErrInvalid,
			unnamed,
		)
	}
	return nil
}
