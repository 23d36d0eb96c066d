package multilock

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"

	"holdfast/internal/compose"
	"holdfast/rlock"
)

// part is one of the locks of a [Lock].
type part struct {
	compose.Identity
	locker rlock.Locker
	plain  *rlock.Lock // locker, if it is a lock of package rlock; else nil
}

// newPart returns the part for a lock that is not a MultiLock. index differs for each part.
func newPart(l rlock.Locker, index int) part {
	if plain, ok := l.(*rlock.Lock); ok {
		return part{locker: l, plain: plain, Identity: hook.Identity(plain)}
	}
	p := part{locker: l}
	p.Name, p.Kind = l.Name(), fmt.Sprintf("%T", l)
	if named, ok := l.(interface{ Server() string }); ok {
		p.Server = named.Server()
		// No client has this id. A lock without the name of a server may be anywhere.
		p.Client = "of " + cmp.Or(p.Server, strconv.Itoa(index))
	}
	return p
}

// sameLock reports whether two parts are the same lock.
func sameLock(a, b part) bool {
	if a.plain != nil && b.plain != nil {
		return a.Identity == b.Identity
	}
	return reflect.ValueOf(a.locker).Comparable() && reflect.ValueOf(b.locker).Comparable() &&
		a.locker == b.locker
}

// compareParts orders parts by (server, name). The package documentation says why. On a cluster the
// slot comes before the name, to make the parts of a batch neighbors.
func compareParts(a, b part) int {
	return cmp.Or(
		cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Slot, b.Slot),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Mode, b.Mode), // write before read, because a writer may read, not vice versa
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Client, b.Client),
	)
}

// check returns why the parts, in their order, can never be held together; nil if they can.
func check(parts []part) error {
	if len(parts) == 0 {
		return compose.Invalid("there are no locks; pass at least one")
	}
	return cmp.Or(checkKept(parts), checkServers(parts), checkNames(parts), checkQueues(parts))
}

// checkKept rejects locks of [rlock.AtLeast]. If another part is taken, the MultiLock releases the
// earlier parts again, and nobody could take these.
func checkKept(parts []part) error {
	for _, p := range parts {
		if p.Kept {
			return compose.Invalid("lock %q stays taken after its release (rlock.AtLeast), so it cannot be "+
				"part of a MultiLock; acquire it by itself, before the MultiLock", p.Name)
		}
	}
	return nil
}

// checkServers rejects locks on several Redis servers if a server has no name. Other processes
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
		return compose.Invalid("the server of %q has no name, but a MultiLock across servers needs one; "+
			"set rlock.Options.Server to the same value in every process", unnamed)
	}
	return nil
}

// checkNames rejects two locks with the same name that exclude each other even for the same owner.
// These locks are neighbors in the order.
func checkNames(parts []part) error {
	for i, b := range parts[1:] {
		a := parts[i]
		switch {
		case a.plain == nil || b.plain == nil || a.Server != b.Server || a.Name != b.Name:
		case a.Client != b.Client:
			return compose.Invalid("lock %q on %s appears with two clients, so the MultiLock would wait "+
				"for itself; use one client, or if the clients use different databases, give each database "+
				"its own rlock.Options.Server, the same in every process",
				a.Name, a.Server)
		case a.Kind != b.Kind:
			return compose.Invalid("lock %q appears as two kinds of lock, which exclude each other; use "+
				"one kind", a.Name)
		}
	}
	return nil
}

// checkQueues rejects fair locks that share a queue, as "x" and "{x}" do by Redisson's key names.
// An owner that holds one lock and waits for the other might queue behind a waiter for the first
// lock.
func checkQueues(parts []part) error {
	type queue struct{ client, key string }
	names := make(map[queue]string)
	for _, p := range parts {
		if p.Queue == "" {
			continue
		}
		q := queue{p.Client, p.Queue}
		if other, taken := names[q]; taken {
			return compose.Invalid("fair locks %q and %q share a queue, because their names differ only "+
				"in braces; use another name for one of them", other, p.Name)
		}
		names[q] = p.Name
	}
	return nil
}
