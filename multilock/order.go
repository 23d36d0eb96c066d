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

// part is one of the locks.
type part struct {
	rlock.Locker
	plain    *rlock.Lock // the same, if it is a lock of package rlock
	batch    hooks.Batch // with which others it can be taken in one step
	identity hooks.Identity
}

// inOrder are the parts of all the locks, in the order of (server, name) and each once. Everybody
// who wants some of them takes them in this order. So among those who wait for each other in a
// circle there would be one that holds the last of the locks they wait for, and waits for an
// earlier one, which nobody does.
//
// On a cluster the slot comes before the name, so that what can be taken together stands together.
func sortedParts(locks []rlock.Locker) ([]part, error) {
	parts, err := flatten(nil, locks)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: no locks", rlock.ErrInvalid)
	}
	slices.SortStableFunc(
		parts,
		func(a, b part) int { return compareIdentities(a.identity, b.identity) },
	)
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

// flatten puts MultiLocks among the locks apart.
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
			parts = append(parts, part{Locker: l, plain: l, batch: hook.Batch(l), identity: hook.Identity(l)})
		default:
			p := part{Locker: l, identity: hooks.Identity{Name: l.Name(), Kind: fmt.Sprintf("%T", l)}}
			if of, ok := l.(interface{ Server() string }); ok {
				p.identity.Server = of.Server()
				p.identity.Client = "of " + p.identity.Server // which is no client's id
				if p.identity.Server == "" {
					p.identity.Client += strconv.Itoa(len(parts)) // who says nothing may be anywhere
				}
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// absent tells that a lock is nil, or a nil pointer.
func isNil(l rlock.Locker) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// same tells that two parts are one lock.
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
		compareBool(a.Shared, b.Shared), // a writer may read, and a reader may not write
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

// compatible refuses neighbours in the order that keep each other out, also for one owner.
func checkNeighbours(a, b part) error {
	if a.plain == nil || b.plain == nil || a.identity.Server != b.identity.Server ||
		a.identity.Name != b.identity.Name {
		return nil
	}
	if a.identity.Client != b.identity.Client {
		if a.identity.Server == "" {
			return nil // oneOrder refuses them for that
		}
		return fmt.Errorf(
			"%w: lock %q on %s through two clients, which keep each other out",
			rlock.ErrInvalid,
			a.identity.Name,
			a.identity.Server,
		)
	}
	if a.identity.Kind != b.identity.Kind {
		return fmt.Errorf(
			"%w: lock %q as two kinds, which keep each other out",
			rlock.ErrInvalid,
			a.identity.Name,
		)
	}
	return nil
}

// apartInQueues refuses fair locks that share a queue, which Redisson's names give to "x" and
// "{x}": one that holds the first and wants the other may wait behind somebody who wants the first.
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
				"%w: fair locks %q and %q share a queue by their names: use another name for one of them",
				rlock.ErrInvalid,
				other,
				p.identity.Name,
			)
		}
		names[q] = p.identity.Name
	}
	return nil
}

// oneOrder refuses locks on several Redises if one of those has no name: other processes might take
// them in another order, and wait in a circle.
func checkServers(parts []part) error {
	first, several, unnamed := "", false, ""
	for _, p := range parts {
		if p.identity.Client == "" {
			continue // a locker that says nothing of servers
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
			"%w: locks on several Redises are taken in the order of their servers' names, and the server of %q has none: set rlock.Options.Server, in all processes alike",
			rlock.ErrInvalid,
			unnamed,
		)
	}
	return nil
}
