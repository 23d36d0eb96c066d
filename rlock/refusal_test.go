package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// requireRefusal requires that err is the server's refusal with the given code, and says what to do about it.
func requireRefusal(t testing.TB, err error, code string) {
	t.Helper()
	var refusal *rlock.ServerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, "%v", err)
	require.NotEmpty(t, refusal.Advice)
	require.ErrorContains(t, err, refusal.Advice)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

// requireRefusedAtOnce requires that a wait ends with a refusal long before its time is over.
func requireRefusedAtOnce(t testing.TB, l *rlock.Lock, code string) {
	t.Helper()
	start := time.Now()
	_, err := l.TryLock(t.Context(), 2*patience, time.Second)
	requireRefusal(t, err, code)
	require.Less(t, time.Since(start), patience)
}

func TestServerOutOfMemoryRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("mine"), rlock.Watchdog)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")

	requireRefusedAtOnce(t, c.NewLock("another"), "OOM")
	require.Zero(t, s.DoInt(t, "EXISTS", "another"))
	_, err := c.NewLock("mine").Lock(hold.Context(), rlock.Watchdog)
	requireRefusal(t, err, "OOM")
	require.True(t, hold.Valid())
}

func TestServerOutOfMemoryStillRenewsAndReleases(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	lock := c.NewLock("job")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")

	require.Never(t, func() bool { return !outer.Valid() }, 3*lease, lease/10, "not renewed")
	unlock(t, inner)
	require.True(t, outer.Valid())
	waiter := lockInBackground(t.Context(), newClient(t, s, rlock.Options{}).NewLock("job"), time.Second)
	unlock(t, outer)
	// The waiter learns that the lock is free, and that it cannot have it.
	requireRefusal(t, result(t, waiter).err, "OOM")
	require.Zero(t, s.DoInt(t, "EXISTS", "job"))
}

func TestServerThatCannotSaveRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	// A snapshot cannot take the name of a directory.
	s := redistest.Start(t, redistest.WithAppendOnly(),
		redistest.WithArgs("--appenddirname", "occupied", "--dbfilename", "occupied", "--save", "3600 1"))
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("mine"), time.Minute)
	s.Do(t, "BGSAVE")
	eventually(t, func() bool {
		info, _ := s.Call("INFO", "persistence")
		text, _ := info.(string)
		return strings.Contains(text, "rdb_last_bgsave_status:err")
	}, "the snapshot did not fail")

	requireRefusedAtOnce(t, c.NewLock("another"), "MISCONF")
	requireRefusal(t, hold.Unlock(t.Context()), "MISCONF")
	require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
}

func TestReplicaRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	unlocked := take(t, c.NewLock("unlocked"), time.Minute)
	renewed := take(t, c.NewLock("renewed"), rlock.Watchdog)
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // a master that does not answer

	requireRefusedAtOnce(t, c.NewLock("another"), "READONLY")
	requireRefusal(t, unlocked.Unlock(t.Context()), "READONLY")
	require.ErrorIs(t, unlocked.Err(), rlock.ErrReleased)
	receive(t, renewed.Done(), "a lock that cannot be renewed was not lost")
	require.ErrorIs(t, renewed.Err(), rlock.ErrLost)
}

func TestWaiterHearsThatItsServerBecameAReplica(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := take(t, newClient(t, s, rlock.Options{}).NewLock("job"), 500*time.Millisecond)
	waiter := lockInBackground(t.Context(), newClient(t, s, rlock.Options{}).NewLock("job"), time.Second)
	awaitListeners(t, s, "job", 1)
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")

	requireRefusal(t, result(t, waiter).err, "READONLY")
	require.Error(t, hold.Unlock(t.Context()))
}

func TestKeyThatIsNoLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	s.Do(t, "SET", "text", "precious")
	lock := c.NewLock("text")

	requireRefusedAtOnce(t, lock, "WRONGTYPE")
	_, err := lock.ForceUnlock(t.Context())
	requireRefusal(t, err, "WRONGTYPE")
	_, err = lock.Info(t.Context())
	requireRefusal(t, err, "WRONGTYPE")
	_, err = lock.IsHeld(rlock.WithOwner(t.Context()))
	requireRefusal(t, err, "WRONGTYPE")
	require.Equal(t, "precious", s.DoString(t, "GET", "text"))

	s.Do(t, "HSET", "hash", "name", "Ada")
	_, err = c.NewLock("hash").Info(t.Context())
	require.ErrorContains(t, err, "not a lock")
}

func TestLockThatWasOverwrittenIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	explicit := take(t, c.NewLock("explicit"), time.Minute)
	renewed := take(t, c.NewLock("renewed"), rlock.Watchdog)
	neighbour := take(t, c.NewLock("neighbour"), rlock.Watchdog)
	s.Do(t, "SET", "explicit", "precious")
	s.Do(t, "SET", "renewed", "precious")

	requireRefusal(t, explicit.Unlock(t.Context()), "WRONGTYPE")
	receive(t, renewed.Done(), "a lock that was overwritten was not lost")
	require.ErrorIs(t, renewed.Err(), rlock.ErrLost)
	require.Equal(t, []string{"precious", "precious"}, s.DoStrings(t, "MGET", "explicit", "renewed"))
	require.Never(t, func() bool { return !neighbour.Valid() }, 600*time.Millisecond, 30*time.Millisecond)
	unlock(t, neighbour)
}
