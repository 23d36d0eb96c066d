package multilock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/rlock"
)

// hook gives access to the unexported parts of package rlock.
var hook = rlock.Internals(compose.Access{})

// Lock acquires several locks, all or none. A Lock has no state, so you can create any number with
// the same parts. A Lock is safe for concurrent use.
type Lock struct {
	name     string
	servers  string      // the names of the servers, sorted and joined by commas
	first    *rlock.Lock // the tracer of its client is used; nil if no part is of package rlock
	parts    []part      // in the order of acquisition, which is the same in all processes
	identity string      // the same for locks of the same parts; "" if they can never be locked
	invalid  error       // why the parts can never be locked; nil if they can
}

var _ rlock.Locker = (*Lock)(nil)

// New returns a lock of the given locks. The parts can be locks of any kind, of one client or
// several, other MultiLocks, RedLocks, and your own [rlock.Locker] types. A repeated lock counts
// once.
//
// New sends nothing. The first use returns [rlock.ErrInvalid] for parts that can never be locked
// together:
//   - no locks at all,
//   - two locks of package rlock that exclude each other, or
//   - locks on several servers, if a server has no name for all processes (see
//     [rlock.Options].Server).
//
// Your own types are ordered by Name, and by Server() string if a type has that method, so no two
// parts should return the same values. New does not detect that a RedLock excludes a plain lock on
// one of its nodes, or that two RedLocks with common nodes exclude each other.
func New(locks ...rlock.Locker) *Lock {
	l := new(Lock)
	var names []string
	for _, lock := range locks {
		if v := reflect.ValueOf(lock); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			l.invalid = cmp.Or(l.invalid, compose.Invalid("one of the locks is nil; pass only locks "+
				"that a client made"))
			continue
		}
		names = append(names, lock.Name())
		if inner, ok := lock.(*Lock); ok {
			l.invalid = cmp.Or(l.invalid, inner.invalid)
			for _, p := range inner.parts {
				l.parts = append(l.parts, newPart(p.locker, len(l.parts)))
			}
		} else {
			l.parts = append(l.parts, newPart(lock, len(l.parts)))
		}
	}
	l.name = strings.Join(names, "+")
	var servers []string
	for _, p := range l.parts {
		l.first, servers = cmp.Or(l.first, p.plain), append(servers, p.Server)
	}
	slices.Sort(servers)
	l.servers = strings.TrimPrefix(strings.Join(slices.Compact(servers), ","), ",") // without ""
	slices.SortStableFunc(l.parts, compareParts)
	l.parts = slices.CompactFunc(l.parts, sameLock)
	l.invalid = cmp.Or(l.invalid, check(l.parts))
	if l.invalid != nil {
		return l // without an identity, because parts may be missing
	}
	var identity []byte
	for _, p := range l.parts {
		identity = fmt.Appendf(identity, "%#v", p.Identity)
	}
	l.identity = string(identity)
	return l
}

// NewOn is like [New], with a plain lock of client ([rlock.Client.NewLock]) for each name.
func NewOn(client *rlock.Client, names ...string) *Lock {
	locks := make([]rlock.Locker, len(names))
	for i, name := range names {
		locks[i] = client.NewLock(name)
	}
	return New(locks...)
}

// Name returns the names of the locks in the order of the arguments, joined by "+".
func (l *Lock) Name() string { return l.name }

// Lock acquires all locks and holds them for at most lease, or with [rlock.Watchdog] until you
// release the hold. If ctx carries an owner that holds some of the locks already, Lock adds nested
// holds.
//
// Lock blocks until all locks are acquired or ctx ends. Lock waits for the parts in order, and
// keeps the earlier parts meanwhile.
//
// Lock returns the errors of [rlock.Lock.Lock] for the part that could not be acquired, and the
// error names the part. Lock returns [rlock.ErrLost] if a part was lost during the wait for another
// part. After an error, this call holds nothing. If a part could not be released, the error also
// says so.
func (l *Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return l.acquire(ctx, wait.Unlimited, lease)
}

// TryLock is like [Lock.Lock], but waits for at most wait in total. With [rlock.NoWait], TryLock
// tries each part once, each for at most Options.CommandTimeout. A negative wait is
// [rlock.ErrInvalid].
//
// Before TryLock returns an error, TryLock releases the acquired parts, so the call may exceed wait
// by a round trip. If the server of a part hangs, the call may exceed wait by
// Options.CommandTimeout for the last step and again for the release.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	return l.acquire(ctx, wait, lease)
}

// Unlock releases the latest hold of the owner in ctx, for code without the hold. Unlock blocks
// like [rlock.Hold.Unlock]. Unlock returns [rlock.ErrNotHeld] if ctx has no owner, or if the owner
// does not hold this MultiLock. If the owner lost the lock, Unlock returns [rlock.ErrLost] once for
// each hold, until the owner acquires the MultiLock again. A process remembers its latest 1024
// losses.
func (l *Lock) Unlock(ctx context.Context) error {
	token, _ := owner.From(ctx)
	if token == 0 {
		return l.wrap(fmt.Errorf("%w: ctx carries no owner; call Unlock on the hold, or pass "+
			"hold.Context() or a context from rlock.WithOwner", rlock.ErrNotHeld))
	}
	key := sessionKey{token, l.identity}
	var holds []*rlock.Hold
	if s := sessions.Find(key); s != nil {
		s.Do(func(ow *owned) { holds = slices.Clone(ow.holds) })
	}
	for _, hold := range append(holds, lostHolds.Of(key)...) { // innermost first, as they were lost
		err := hold.Unlock()
		// Skip a hold that another goroutine is releasing. A releaseError only concerns a part.
		if !errors.Is(err, rlock.ErrNotHeld) || errors.As(err, new(releaseError)) {
			return err
		}
	}
	return l.wrap(fmt.Errorf("%w: the owner in ctx does not hold this MultiLock", rlock.ErrNotHeld))
}

func (l *Lock) wrap(err error) error { return lockError{l.name, err} }

// lockError adds the name of the lock to an error, which may name parts in the same way.
type lockError struct {
	name string
	err  error
}

func (e lockError) Error() string {
	err := strings.ReplaceAll(e.err.Error(), "holdfast: ", "")
	return fmt.Sprintf("holdfast: lock %q: %s", e.name, err)
}

func (e lockError) Unwrap() error { return e.err }
