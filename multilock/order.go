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
	hooks.Identity
	locker rlock.Locker
	plain  *rlock.Lock // the same, if it is a lock of package rlock; else nil
}

// sortedParts returns the parts of all the locks, each once, ordered by (server, name): the package
// documentation says why. On a cluster the slot comes before the name, to make the parts of a batch
// neighbours.
func sortedParts(locks []rlock.Locker) ([]part, error) {
	parts, err := flatten(locks)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, invalid("no locks")
	}
	slices.SortStableFunc(parts, compareParts)
	parts = slices.CompactFunc(parts, sameLock)
	return parts, cmp.Or(checkServers(parts), checkNames(parts), checkQueues(parts))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{rlock.ErrInvalid}, args...)...)
}

// flatten returns the parts of all the locks; those of a MultiLock are its parts.
func flatten(locks []rlock.Locker) (parts []part, err error) {
	for _, l := range locks {
		if isNil(l) {
			return nil, invalid("one of the locks is nil")
		}
		switch l := l.(type) {
		case *Lock:
			if l.invalid != nil {
				return nil, l.invalid
			}
			parts = append(parts, l.parts...)
		case *rlock.Lock:
			parts = append(parts, part{locker: l, plain: l, Identity: hook.Identity(l)})
		default:
			p := part{locker: l}
			p.Name, p.Kind = l.Name(), fmt.Sprintf("%T", l)
			if named, ok := l.(interface{ Server() string }); ok {
				p.Server = named.Server()
				p.Client = "of " + p.Server // no client has this id
				if p.Server == "" {
					p.Client += strconv.Itoa(len(parts)) // it may be anywhere
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
		return a.Identity == b.Identity
	}
	return reflect.ValueOf(a.locker).Comparable() && reflect.ValueOf(b.locker).Comparable() &&
		a.locker == b.locker
}

func compareParts(a, b part) int {
	return cmp.Or(
		cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Slot, b.Slot),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Mode, b.Mode), // write before read: a writer may read, not vice versa
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Client, b.Client),
	)
}

// checkNames refuses two locks of one name that exclude each other even for one owner. They are
// neighbours in the order.
func checkNames(parts []part) error {
	for i, b := range parts[1:] {
		a := parts[i]
		switch {
		case a.plain == nil || b.plain == nil || a.Server != b.Server || a.Name != b.Name:
		case a.Client != b.Client:
			return invalid("lock %q on %s through two clients, which keep each other out", a.Name,
				a.Server)
		case a.Kind != b.Kind:
			return invalid("lock %q as two kinds, which keep each other out", a.Name)
		}
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
		if p.plain == nil || p.Kind != "fair" {
			continue
		}
		q := queue{p.Client, lua.QueueKey(p.Name)}
		if other, taken := names[q]; taken {
			return invalid("fair locks %q and %q share a queue by their names: use another name "+
				"for one of them", other, p.Name)
		}
		names[q] = p.Name
	}
	return nil
}

// checkServers refuses locks on several Redis servers of which one has no name. Other processes
// might order the servers differently, and a deadlock would be possible.
func checkServers(parts []part) error {
	clients, unnamed := make(map[string]bool), ""
	for _, p := range parts {
		if p.Client == "" {
			continue // a Locker without the method Server
		}
		clients[p.Client] = true
		if p.Server == "" {
			unnamed = p.Name
		}
	}
	if len(clients) > 1 && unnamed != "" {
		return invalid("locks on several Redises are taken in the order of their servers' names, "+
			"and the server of %q has none: set rlock.Options.Server, in all processes alike",
			unnamed)
	}
	return nil
}
