//go:build interop

package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// actor is one owner of locks on one side: a Java thread, or a Go context with an owner. One
// operation at a time.
type actor interface {
	// tryLock takes a lock, waiting at most for so long; errRefused if somebody else had it. A
	// lease of 0 is the watchdog's.
	tryLock(l target, wait, lease time.Duration) error
	// lock is tryLock without an end of the wait.
	lock(l target, lease time.Duration) error
	// unlock gives back one level; errNotHolder if there is none.
	unlock(l target) error
	// forceUnlock frees all parts of the lock.
	forceUnlock(l target) error
	// count is how many levels this owner has.
	count(l target) (int, error)
	// locked tells whether anybody has the lock, and ttl for how long still.
	locked(l target) (bool, error)
	ttl(l target) (time.Duration, error)
	// token is the number of the acquisition of a fenced lock that was just made.
	token() int64
}

var (
	errRefused   = errors.New("somebody else has the lock")
	errNotHolder = errors.New("not the holder")
)

// side is Go or Java. Its actors are those of one process.
type side struct {
	name     string
	newActor func(testing.TB, *site) actor
	places   bool // it hands locks over
}

var (
	goSide   = side{name: "Go", newActor: newGoActor, places: true}
	javaSide = side{name: "Java", newActor: newJavaActor}

	// announcingSide is Go without hand-overs: it announces each release, as Redisson does.
	announcingSide = side{name: goSide.name, newActor: func(t testing.TB, s *site) actor {
		t.Helper()
		return newGoActors(t, s, rlock.HandOverNone, 1)[0]
	}}
)

// hasPlaces tells whether those of a side who wait for a lock have a place in Redis, at which they
// are given it.
func (s side) hasPlaces(kind string) bool { return s.places && (kind == reentrant || kind == fenced) }

// directions are who holds and who waits.
var directions = []struct {
	name         string
	holds, waits side
}{
	{"Java holds and Go waits", javaSide, goSide},
	{"Go holds and Java waits", goSide, javaSide},
}

// outcome is what became of something in the background, and when.
type outcome struct {
	err error
	at  time.Time
}

// inBackground does something in a goroutine.
func inBackground(do func() error) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		err := do()
		done <- outcome{err, time.Now()}
	}()
	return done
}

// waitInBackground takes a lock in a goroutine, for a long lease, waiting as long as a test has
// patience.
func waitInBackground(a actor, l target) <-chan outcome {
	return inBackground(func() error { return a.tryLock(l, locktest.Timeout, longLease) })
}

// acquired is when an acquisition in the background succeeded, which it must.
func acquired(t testing.TB, waiting <-chan outcome) time.Time {
	t.Helper()
	// The wait itself ends after Timeout.
	select {
	case o := <-waiting:
		require.NoError(t, o.err)
		return o.at
	case <-time.After(2 * locktest.Timeout):
		require.FailNow(t, "the acquisition has not ended")
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

// take acquires a lock that is free or the actor's.
func take(t testing.TB, a actor, l target, lease time.Duration) {
	t.Helper()
	require.NoError(t, a.tryLock(l, 0, lease))
}

// refused requires that the lock is not to be had.
func refused(t testing.TB, a actor, l target) {
	t.Helper()
	require.ErrorIs(t, a.tryLock(l, 0, longLease), errRefused)
}

// unlock gives back a level, which must succeed.
func unlock(t testing.TB, a actor, l target) {
	t.Helper()
	require.NoError(t, a.unlock(l))
}

// count is how many levels an actor has by its own account.
func count(t testing.TB, a actor, l target) int {
	t.Helper()
	n, err := a.count(l)
	require.NoError(t, err)
	return n
}

// locked tells whether somebody has the lock by the account of this actor.
func locked(t testing.TB, a actor, l target) bool {
	t.Helper()
	is, err := a.locked(l)
	require.NoError(t, err)
	return is
}
