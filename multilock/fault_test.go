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

// requireRefused requires that a lock of parts on both servers, the second of which refuses for good, is refused at once
// however long one would wait, with that server's error, and nothing is held on the first.
func requireRefused(t *testing.T, p *pair, lock *multilock.Lock, code, part string) {
	t.Helper()
	for name, acquire := range map[string]func() (*rlock.Hold, error){
		"no wait": func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), rlock.NoWait, longLease) },
		"wait":    func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), patience, longLease) },
		"lock":    func() (*rlock.Hold, error) { return lock.Lock(t.Context(), rlock.Watchdog) },
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
	company := multilock.New(p.client.NewFairLock("a"), p.client.NewLock("b"), p.another.NewLock("c"), p.another.NewLock("d"))
	p.second.Do(t, "REPLICAOF", "127.0.0.1", "1")
	requireRefused(t, p, one, "READONLY", "c")
	requireRefused(t, p, company, "READONLY", "c")
	p.second.Do(t, "REPLICAOF", "NO", "ONE")
	unlock(t, take(t, one, longLease))
	unlock(t, take(t, company, longLease))
	requireFree(t, p.first, p.second)
}

func TestPartWhoseKeyIsForbiddenFailsTheWhole(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	p.second.Do(t, "ACL", "SETUSER", "app", "on", ">secret", "+@all", "allchannels", "~a", "~b")
	limited := newClient(t, p.second, rlock.Options{Server: "second"},
		func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" })
	requireRefused(t, p, multilock.New(p.client.NewFairLock("a"), limited.NewLock("forbidden")), "NOPERM", "forbidden")
	// Among those that are tried with one script, who waits finds out which.
	company := multilock.New(p.client.NewLock("a"), limited.NewLock("a"), limited.NewLock("b"), limited.NewLock("forbidden"))
	_, err := company.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorContains(t, err, "NOPERM")
	requireFree(t, p.first, p.second)
	_, err = company.Lock(t.Context(), longLease)
	require.ErrorContains(t, err, "NOPERM")
	require.ErrorContains(t, err, `lock "forbidden"`)
	requireFree(t, p.first, p.second)
}

func TestPartWhoseServerIsDownFailsTheWholeWhenTheWaitIsOver(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	// Or the second round might meet a connection whose end nobody has noticed in the first.
	p.another = newClient(t, p.second, rlock.Options{Server: "second"}, redistest.OneConnection)
	for _, lock := range []*multilock.Lock{
		multilock.New(p.client.NewLock("a"), p.another.NewLock("c")),
		multilock.New(p.client.NewLock("a"), p.client.NewLock("b"), p.another.NewLock("c"), p.another.NewLock("d")),
	} {
		unlock(t, take(t, lock, longLease))
		p.second.Kill(t)
		var refusal *rlock.ServerError
		_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorAs(t, err, &refusal)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		requireFree(t, p.first)
		within(t, time.Second+promptly, func() {
			_, err = lock.TryLock(t.Context(), time.Second, longLease)
			require.ErrorAs(t, err, &refusal)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		})
		requireFree(t, p.first)

		// Who waits long enough gets it.
		waiter := lockInBackground(t.Context(), lock, longLease)
		eventually(t, func() bool { return exists(t, p.first, "a") }, "a is taken")
		p.second.Restart(t)
		unlock(t, acquired(t, waiter))
		requireFree(t, p.first, p.second)
	}
}

func TestReleaseGoesOnPastFailuresAndReportsAll(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{CommandTimeout: promptly})
	third := redistest.Start(t)
	c := newClient(t, third, rlock.Options{Server: "third"})
	lock := multilock.New(p.client.NewLock("a"), p.client.NewLock("b"), p.another.NewLock("c"),
		p.another.NewFairLock("d"), c.NewLock("e"))
	hold := take(t, lock, longLease)
	p.second.Kill(t)
	forceUnlock(t, p.client.NewLock("a"))
	within(t, 2*promptly, func() {
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

func TestAcquisitionThatCannotGiveBackAPartSaysSo(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{CommandTimeout: time.Second})
	take(t, p.another.NewLock("b"), longLease)
	lock := multilock.New(p.client.NewLock("a"), p.another.NewLock("b"))
	ctx, cancel := context.WithCancel(t.Context())
	waiter := lockInBackground(ctx, lock, longLease)
	awaitListener(t, p.second, "b")
	p.first.Kill(t)
	cancel()
	o := result(t, waiter)
	require.ErrorIs(t, o.Err, context.Canceled)
	require.ErrorContains(t, o.Err, "and a part was not released")
	require.ErrorContains(t, o.Err, `lock "a"`)
}

// A hung server must not keep anybody for longer than the wait, whether its locks are tried with one script or not.
func TestHungServerDoesNotKeepTryLockBeyondItsWait(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	for name, names := range map[string][]string{"together": {"b", "c"}, "one by one": {"b"}} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, rlock.Options{})
			parts := []rlock.Locker{p.client.NewLock("a")}
			for _, name := range names {
				parts = append(parts, p.another.NewLock(name))
			}
			lock := multilock.New(parts...)
			unlock(t, take(t, lock, longLease))
			p.second.Pause(t)
			start := time.Now()
			_, err := lock.TryLock(t.Context(), wait, longLease)
			took := time.Since(start)
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.GreaterOrEqual(t, took, wait)
			require.Less(t, took, wait+promptly)
			requireFree(t, p.first)
			p.second.Resume(t)
			awaitFree(t, p.second)
		})
	}
}

// While a server hangs that is asked for several at once, the lease of what is held on another must not run out.
func TestPartIsKeptWhileTheServerOfTheOthersHangs(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	p := startPair(t, rlock.Options{})
	lock := multilock.New(p.client.NewLock("a"), p.another.NewLock("b"), p.another.NewLock("c"))
	unlock(t, take(t, lock, longLease))
	p.second.Pause(t)
	waiter := inBackground(func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), time.Minute, lease) })
	eventually(t, func() bool { return exists(t, p.first, "a") }, "a is taken")
	stop := watchLease(t, p.first, "a", lease)
	<-time.After(2 * lease)
	require.Positive(t, stop())
	p.second.Resume(t)
	unlock(t, acquired(t, waiter))
	awaitFree(t, p.first, p.second)
}

func TestServerThatForgotTheScriptsIsTaughtThemAgain(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		lock := of(locks)
		hold := take(t, lock, longLease)
		p.first.Do(t, "SCRIPT", "FLUSH")
		inner := takeWith(hold.Context(), t, lock, longLease)
		p.first.Do(t, "SCRIPT", "FLUSH")
		require.NoError(t, hold.Extend(t.Context(), longLease), name)
		p.first.Do(t, "SCRIPT", "FLUSH")
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, p.first, p.second)
	}
}

// What the replica has of the locks is released there, by whatever goes on while the Sentinel makes it the master.
func TestPartsAreReleasedWhileTheirServerFailsOver(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	c := newClientOn(t, group.Client(t), rlock.Options{CommandTimeout: time.Minute})
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c"))
	hold := take(t, lock, longLease)
	master, replica := group.Nodes[0], group.Nodes[1]
	eventually(t, func() bool { return len(left(t, replica)) == 3 }, "the replica has all")
	// It refuses all writes, as one that was replaced does until its clients have heard of it.
	host, port, err := net.SplitHostPort(replica.Addr())
	require.NoError(t, err)
	master.Do(t, "CONFIG", "SET", "replica-read-only", "yes")
	master.Do(t, "REPLICAOF", host, port)
	released := make(chan error, 1)
	go func() { released <- hold.Unlock(context.Background()) }()
	eventually(t, func() bool { return master.CommandStats(t)["evalsha"] >= 3 }, "it is tried again")
	master.Kill(t)
	require.NoError(t, receive(t, released, "the release has not ended"))
	eventually(t, func() bool { return replica.DoStrings(t, "ROLE")[0] == "master" }, "promoted")
	requireFree(t, replica)
}
