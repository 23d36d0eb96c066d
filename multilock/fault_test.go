//go:build redis

package multilock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// requireRefused requires that lock, with parts on both servers, is refused at once with the error
// of the second, which refuses it for good, however long the caller would wait. Nothing must stay
// held on the first.
func requireRefused(t *testing.T, p *pair, lock *multilock.Lock, code, part string) {
	t.Helper()
	for name, acquire := range map[string]func() (*rlock.Hold, error){
		"no wait": func() (*rlock.Hold, error) {
			return lock.TryLock(t.Context(), rlock.NoWait, longLease)
		},
		"wait": func() (*rlock.Hold, error) {
			return lock.TryLock(t.Context(), longWait, longLease)
		},
		"lock": func() (*rlock.Hold, error) { return lock.Lock(t.Context(), rlock.Watchdog) },
	} {
		within(t, 3*time.Second, func() {
			_, err := acquire()
			var refusal *rlock.ServerError
			require.ErrorAs(t, err, &refusal, name)
			require.Equal(t, code, refusal.Code, name)
			require.NotEmpty(t, refusal.Advice)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err, `lock "`+part+`"`, name)
		})
		requireFree(t, p.first)
	}
}

func TestPartThatIsRefusedFailsTheWholeAfterTheOthersWereReleased(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	one := multilock.New(p.client.NewLock("a"), p.client.NewLock("b"), p.another.NewLock("c"))
	batched := multilock.New(p.client.NewFairLock("a"), p.client.NewLock("b"),
		p.another.NewLock("c"), p.another.NewLock("d"))
	p.second.Do(t, "REPLICAOF", "127.0.0.1", "1")
	requireRefused(t, p, one, "READONLY", "c")
	requireRefused(t, p, batched, "READONLY", "c")
	p.second.Do(t, "REPLICAOF", "NO", "ONE")
	unlock(t, take(t, one, longLease))
	unlock(t, take(t, batched, longLease))
	requireFree(t, p.first, p.second)
}

func TestPartWhoseKeyIsForbiddenFailsTheWhole(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	p.second.Do(t, "ACL", "SETUSER", "app", "on", ">secret", "+@all", "allchannels", "~a", "~b")
	limited := newClient(t, p.second, rlock.Options{Server: "second"},
		func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" })
	requireRefused(t, p, multilock.New(p.client.NewFairLock("a"), limited.NewLock("forbidden")),
		"NOPERM", "forbidden")
	// TryLock of a batch does not say which lock is forbidden; a waiter finds out.
	batched := multilock.New(p.client.NewLock("a"),
		limited.NewLock("a"), limited.NewLock("b"), limited.NewLock("forbidden"))
	_, err := batched.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorContains(t, err, "NOPERM")
	requireFree(t, p.first, p.second)
	_, err = batched.Lock(t.Context(), longLease)
	require.ErrorContains(t, err, "NOPERM")
	require.ErrorContains(t, err, `lock "forbidden"`)
	requireFree(t, p.first, p.second)
}

func TestReleaseGoesOnPastFailuresAndReportsAll(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second // for all parts together
	p := startPair(t, rlock.Options{CommandTimeout: limit})
	third := redistest.Start(t)
	c := newClient(t, third, rlock.Options{Server: "third"})
	lock := multilock.New(p.client.NewLock("a"), p.client.NewLock("b"), p.another.NewLock("c"),
		p.another.NewFairLock("d"), c.NewLock("e"))
	hold := take(t, lock, longLease)
	p.second.Kill(t)
	forceUnlock(t, p.client.NewLock("a"))
	within(t, limit+promptly, func() {
		err := hold.Unlock(t.Context())
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		for _, name := range []string{"a", "c", "d"} {
			require.ErrorContains(t, err, `lock "`+name+`"`)
		}
		for _, name := range []string{"b", "e"} {
			require.NotContains(t, err.Error(), `lock "`+name+`"`)
		}
	})
	requireFree(t, p.first, third)
}

// While a server hangs that is asked for a batch, the lease of a part on another must not expire.
func TestPartIsKeptWhileTheServerOfAnotherHangs(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	p := startPair(t, rlock.Options{})
	lock := multilock.New(p.client.NewLock("a"), p.another.NewLock("b"), p.another.NewLock("c"))
	unlock(t, take(t, lock, longLease))
	p.second.Pause(t)
	waiter := inBackground(
		func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), time.Minute, lease) })
	eventually(t, func() bool { return exists(t, p.first, "a") }, "a is taken")
	stop := watchLease(t, p.first, "a", lease)
	<-time.After(2 * lease)
	require.Positive(t, stop())
	p.second.Resume(t)
	unlock(t, acquired(t, waiter))
	waitUntilFree(t, p.first, p.second)
}

// The replica's copies of the locks are released, whatever happens while Sentinel promotes it.
func TestPartsAreReleasedWhileTheirServerFailsOver(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	c := newClientOn(t, group.Client(t),
		rlock.Options{CommandTimeout: time.Minute, Anonymous: true}) // its commands are counted
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c"))
	hold := take(t, lock, longLease)
	master, replica := group.Nodes[0], group.Nodes[1]
	eventually(t, func() bool { return len(left(t, replica)) == 3 }, "the replica has all")
	// The old master refuses all writes, as one does from its replacement until its clients know.
	host, port, err := net.SplitHostPort(replica.Addr())
	require.NoError(t, err)
	master.Do(t, "CONFIG", "SET", "replica-read-only", "yes")
	master.Do(t, "REPLICAOF", host, port)
	released := make(chan error, 1)
	go func() { released <- hold.Unlock(context.Background()) }()
	eventually(t, func() bool { return master.CommandStats(t)["evalsha"] >= 3 }, "it is retried")
	master.Kill(t)
	require.NoError(t, receive(t, released, "the release has not ended"))
	eventually(t, func() bool { return replica.DoStrings(t, "ROLE")[0] == "master" }, "promoted")
	requireFree(t, replica)
}
