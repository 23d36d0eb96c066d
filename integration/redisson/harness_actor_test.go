//go:build interop

package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/rediserr"
	"holdfast/rlock"
)

// actor is one owner of locks on one side: a Java thread, or a Go context with an owner. It does
// one operation at a time.
type actor interface {
	// tryLock acquires a lock, waiting at most that long. It returns errRefused if another owner
	// holds it, and errReenters if this one holds it and it is not reentrant. The lease
	// rlock.Watchdog is renewed on both sides.
	tryLock(l target, wait time.Duration, lease rlock.Lease) error
	// lock is tryLock without a limit.
	lock(l target, lease rlock.Lease) error
	// unlock releases one level. It returns errNotHolder if there is none.
	unlock(l target) error
	// forceUnlock frees all parts of the lock.
	forceUnlock(l target) error
	// count returns how many levels this owner holds.
	count(l target) (int, error)
	// locked reports whether the lock is held, and ttl for how long.
	locked(l target) (bool, error)
	ttl(l target) (time.Duration, error)
	// token returns the token of the last acquisition of a fenced lock.
	token() int64
}

var (
	errRefused   = errors.New("another owner has the lock")
	errNotHolder = errors.New("not the holder")
	errReenters  = errors.New("the owner holds the lock, which is not reentrant")
)

// noReply reports whether the time of this library was over before Redis replied.
func noReply(err error) bool {
	var refusal *rlock.ServerError
	return errors.As(err, &refusal) && refusal.Class != rediserr.ClassPermanent
}

// side is Go or Java. Its actors belong to one process.
type side struct {
	name      string
	newActor  func(testing.TB, *site) actor
	registers bool // its waiters register for hand-overs
}

var (
	goSide   = side{name: "Go", newActor: newGoActor, registers: true}
	javaSide = side{name: "Java", newActor: newJavaActor}

	// announcingSide is Go without hand-overs: it announces each release, like Redisson.
	announcingSide = side{name: goSide.name, newActor: func(t testing.TB, s *site) actor {
		t.Helper()
		return newGoActors(t, s, rlock.HandOverNone, 1)[0]
	}}
)

// registersFor reports whether waiters of a side register in Redis, so that they may be granted the
// lock.
func (s side) registersFor(kind string) bool {
	return s.registers && (kind == reentrant || kind == fenced || kind == nonReentrant)
}

// directions has the pairs of the side that holds and the side that waits.
var directions = []struct {
	name         string
	holds, waits side
}{
	{"Java holds and Go waits", javaSide, goSide},
	{"Go holds and Java waits", goSide, javaSide},
}

// outcome is the result of something in the background, and when it came.
type outcome struct {
	err error
	at  time.Time
}

// inBackground runs do in a goroutine.
func inBackground(do func() error) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		err := do()
		done <- outcome{err, time.Now()}
	}()
	return done
}

// waitInBackground acquires a lock in a goroutine, for a long lease, waiting as long as a test
// waits.
func waitInBackground(a actor, l target) <-chan outcome {
	return inBackground(func() error { return a.tryLock(l, locktest.Timeout, longLease) })
}

// acquired returns when an acquisition in the background succeeded, which it must. The rest says
// which it is.
func acquired(t testing.TB, waiting <-chan outcome, which ...any) time.Time {
	t.Helper()
	// The wait itself ends after Timeout.
	select {
	case o := <-waiting:
		require.NoError(t, o.err, which...)
		return o.at
	case <-time.After(2 * locktest.Timeout):
		require.FailNow(t, "the acquisition has not ended", which...)
		panic("unreachable")
	}
}

// stillWaits requires that an acquisition in the background has not ended.
func stillWaits(t testing.TB, waiting <-chan outcome) {
	t.Helper()
	select {
	case o := <-waiting:
		require.FailNow(t, "the acquisition has ended", "%v", o.err)
	default:
	}
}

// take acquires a lock that is free or held by the actor.
func acquire(t testing.TB, a actor, l target, lease rlock.Lease) {
	t.Helper()
	require.NoError(t, a.tryLock(l, 0, lease))
}

// refused requires that the lock cannot be acquired.
func refused(t testing.TB, a actor, l target) {
	t.Helper()
	require.ErrorIs(t, a.tryLock(l, 0, longLease), errRefused)
}

// unlock releases a level, which must succeed.
func unlock(t testing.TB, a actor, l target) {
	t.Helper()
	require.NoError(t, a.unlock(l))
}

// count returns how many levels an actor holds according to itself.
func count(t testing.TB, a actor, l target) int {
	t.Helper()
	n, err := a.count(l)
	require.NoError(t, err)
	return n
}

// locked reports whether the lock is held according to this actor.
func locked(t testing.TB, a actor, l target) bool {
	t.Helper()
	is, err := a.locked(l)
	require.NoError(t, err)
	return is
}
