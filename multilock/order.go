package multilock

import (
	"cmp"
	"fmt"
	"reflect"
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

// newPart returns the part for a lock that is no MultiLock. index is different for each part.
func newPart(l rlock.Locker, index int) part {
	if plain, ok := l.(*rlock.Lock); ok {
		return part{locker: l, plain: plain, Identity: hook.Identity(plain)}
	}
	p := part{locker: l}
	p.Name, p.Kind = l.Name(), fmt.Sprintf("%T", l)
	if named, ok := l.(interface{ Server() string }); ok {
		p.Server = named.Server()
		// No client has this id. A lock without a server's name may be anywhere.
		p.Client = "of " + cmp.Or(p.Server, strconv.Itoa(index))
	}
	return p
}

// sameLock reports whether two parts are one lock.
func sameLock(a, b part) bool {
	if a.plain != nil && b.plain != nil {
		return a.Identity == b.Identity
	}
	return reflect.ValueOf(a.locker).Comparable() && reflect.ValueOf(b.locker).Comparable() &&
		a.locker == b.locker
}

// compareParts orders parts by (server, name): the package documentation says why. On a cluster the
// slot comes before the name, to make the parts of a batch neighbours.
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

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{rlock.ErrInvalid}, args...)...)
}

// check returns why the parts, in their order, can never be held together; nil if they can.
func check(parts []part) error {
	if len(parts) == 0 {
		return invalid("no locks")
	}
	// Without a name, other processes might order the servers differently: a deadlock is possible.
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
	var a part // the one before b
	type queue struct{ client, key string }
	fair := make(map[queue]string)
	for _, b := range parts {
		// Locks of one name that exclude each other even for one owner are neighbours.
		if a.plain != nil && b.plain != nil && a.Server == b.Server && a.Name == b.Name {
			if a.Client != b.Client {
				return invalid("lock %q on %s through two clients, which keep each other out",
					a.Name, a.Server)
			}
			if a.Kind != b.Kind {
				return invalid("lock %q as two kinds, which keep each other out", a.Name)
			}
		}
		a = b
		if b.plain == nil || b.Kind != "fair" {
			continue
		}
		// Redisson's key names give one queue to "x" and "{x}". An owner that holds one of these
		// fair locks and waits for the other might queue behind a waiter for the first.
		q := queue{b.Client, lua.QueueKey(b.Name)}
		if other, taken := fair[q]; taken {
			return invalid("fair locks %q and %q share a queue by their names: use another name "+
				"for one of them", other, b.Name)
		}
		fair[q] = b.Name
	}
	return nil
}
