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

// Lock acquires all of several locks, or none. It has no state: any number may be made of the same
// parts. It is safe for concurrent use.
type Lock struct {
	name     string
	servers  string      // that have names, sorted and joined by commas
	first    *rlock.Lock // whose client's tracer is told; nil if no part is of package rlock
	parts    []part      // in the order of acquisition, which is the same in all processes
	identity string      // the same for locks of the same parts; "" if they can never be locked
	invalid  error       // why this can never be locked; nil if it can
}

var _ rlock.Locker = (*Lock)(nil)

// New returns a lock over the given ones: locks of any kind, of one client or of several, including
// other MultiLocks, RedLocks and your own [rlock.Locker] types. A lock given twice counts once.
//
// New sends nothing. The first use returns [rlock.ErrInvalid] for what can never be locked: no
// locks at all; two locks of package rlock that exclude each other; locks on several Redis servers
// of which one has no name that all processes agree on (see rlock.Options.Server).
//
// Your own types are ordered by Name, and by Server() string if they have that method; no two
// should return the same. New does not detect that a RedLock and a plain lock that is one of its
// nodes, or two RedLocks that share nodes, exclude each other.
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
		return l // without an identity: some of the parts may be missing
	}
	var identity []byte
	for _, p := range l.parts {
		identity = fmt.Appendf(identity, "%#v", p.Identity)
	}
	l.identity = string(identity)
	return l
}

// NewOn is like [New], with plain locks of one client: [rlock.Client.NewLock] for each name.
func NewOn(client *rlock.Client, names ...string) *Lock {
	locks := make([]rlock.Locker, len(names))
	for i, name := range names {
		locks[i] = client.NewLock(name)
	}
	return New(locks...)
}

// Name returns the names of the locks in the order given, joined by "+".
func (l *Lock) Name() string { return l.name }

// Lock acquires all of the locks. It blocks until it has acquired them or ctx ends. It waits for
// one after the other, and meanwhile keeps those that it has acquired.
//
// The locks are held for lease at most, or with [rlock.Watchdog] until they are released. If ctx
// carries an owner that holds some of them, Lock adds a level to those.
//
// Lock returns what [rlock.Lock.Lock] returns for the part that could not be acquired, which the
// error names. It returns [rlock.ErrLost] if a part was lost while Lock waited for another. After
// an error this call holds nothing; if a part could not be released, the error says so as well.
func (l *Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return l.acquire(ctx, wait.Unlimited, lease)
}

// TryLock is like [Lock.Lock] but waits at most wait for all of the locks in total. With
// [rlock.NoWait] it tries each once. A negative wait is [rlock.ErrInvalid].
//
// TryLock releases the locks that it has acquired before it returns an error. So it may exceed wait
// by a round trip, or if their server hangs, by Options.CommandTimeout for the last step and again
// for the release.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	return l.acquire(ctx, wait, lease)
}

// Unlock releases the innermost level of this MultiLock that ctx's owner holds. See
// [rlock.Hold.Unlock]. It returns [rlock.ErrNotHeld] if ctx has no owner, or one that does not hold
// this MultiLock. It returns [rlock.ErrLost] once for each level that was lost, until the owner
// acquires the MultiLock again; this process remembers its latest 1024 losses.
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
		// Skip a hold that another goroutine is releasing. A releaseError is about a part only.
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
