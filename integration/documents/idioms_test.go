package documents_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/multilock"
	"holdfast/redissonyaml"
	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// The code that porting.md quotes. TestCodeOfPortingIsCompiled compares the two.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ship is work under a lock.
func ship(ctx context.Context) error { return context.Cause(ctx) }

// shipOrder is the finally idiom.
func shipOrder(ctx context.Context, client *rlock.Client, id string) (err error) {
	hold, err := client.NewLock("order:"+id).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	return ship(hold.Context())
}

func TestFinally(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	client, id := redis.Client(), "42"
	require.NoError(t, shipOrder(t.Context(), client, id))
	require.Equal(t, "order:42", client.NewLock("order:"+id).Name())
}

func TestSectionsAsFunctions(t *testing.T) {
	t.Parallel()
	lock, ctx, fn := rlocktest.New(t).Client().NewLock("x"), t.Context(), ship
	require.NoError(t, rlock.Do(ctx, lock, rlock.Forever, rlock.Watchdog, fn))
	price := func(context.Context) (int, error) { return 7, nil }
	n, err := rlock.With(ctx, lock, 3*time.Second, rlock.Watchdog, price)
	require.NoError(t, err)
	require.Equal(t, 7, n)
}

func TestAcquisitions(t *testing.T) {
	t.Parallel()
	lock, ctx := rlocktest.New(t).Client().NewLock("x"), t.Context()
	for _, acquire := range []func() (*rlock.Hold, error){
		func() (*rlock.Hold, error) { return lock.Lock(ctx, rlock.Watchdog) },
		func() (*rlock.Hold, error) { return lock.Lock(ctx, 10*time.Second) },
		func() (*rlock.Hold, error) { return lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog) },
		func() (*rlock.Hold, error) { return lock.TryLock(ctx, 3*time.Second, 30*time.Second) },
		func() (*rlock.Hold, error) { return lock.TryLock(ctx, 3*time.Second, rlock.Watchdog) },
		func() (*rlock.Hold, error) { return lock.TryLock(ctx, rlock.NoWait, 30*time.Second) },
	} {
		hold, err := acquire()
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(ctx))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	lock, ctx := redis.Client().NewLock("x"), t.Context()
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, hold.Unlock(ctx))
	err = hold.Unlock(ctx)
	if !errors.Is(err, rlock.ErrNotHeld) {
		t.Fatal(err)
	}

	redis.Busy("x")
	_, err = lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = lock.Lock(ended, rlock.Watchdog)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// upload holds a lock from one method to another.
type upload struct {
	lock *rlock.Lock
	hold *rlock.Hold
}

func (u *upload) begin(ctx context.Context) (err error) {
	u.hold, err = u.lock.Lock(ctx, rlock.Watchdog)
	return err
}

func (u *upload) end(ctx context.Context) error { return u.hold.Unlock(ctx) }

func TestReleaseInAnotherMethod(t *testing.T) {
	t.Parallel()
	u := upload{lock: rlocktest.New(t).Client().NewLock("upload:7")}
	require.NoError(t, u.begin(t.Context()))
	require.NoError(t, u.end(t.Context()))
}

func TestReleaseInAnotherRequest(t *testing.T) {
	t.Parallel()
	client, ctx := rlocktest.New(t).Client(), t.Context()
	hold, err := client.NewLock("upload:7").Lock(ctx, 10*time.Minute)
	require.NoError(t, err)
	token, err := hold.Detach()
	require.NoError(t, err)
	{
		hold, err := client.Attach(ctx, token, 10*time.Minute)
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(ctx))
	}
}

func TestReleaseWithoutTheHold(t *testing.T) {
	t.Parallel()
	lock, ctx := rlocktest.New(t).Client().NewLock("x"), t.Context()
	ctx = rlock.WithOwner(ctx) // once, where the thread began in Java
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	require.NoError(t, err)
	require.True(t, hold.Valid())
	err = lock.Unlock(ctx) // releases what ctx's owner locked last
	require.NoError(t, err)
}

func TestThreads(t *testing.T) {
	t.Parallel()
	client, ctx := rlocktest.New(t).Client(), t.Context()
	index := func(ctx context.Context) error { return shipOrder(ctx, client, "42") }
	done := make(chan error)
	go func() { done <- index(rlock.Detached(ctx)) }()
	require.NoError(t, <-done)
}

// The request is over before the goroutine begins.
func TestThreadsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	client := rlocktest.New(t).Client()
	ctx, over := context.WithCancel(t.Context())
	begin, done := make(chan struct{}), make(chan error, 1)
	index := func(ctx context.Context) error {
		<-begin
		err := shipOrder(ctx, client, "43")
		done <- err
		return err
	}
	own := rlock.Detached(context.WithoutCancel(ctx))
	go func() { _ = index(own) }()
	over()
	close(begin)
	require.NoError(t, <-done)
}

// tryAcquire is a wrapper that returns nil if the lock is busy, as many in Java do.
func tryAcquire(ctx context.Context, lock *rlock.Lock) (*rlock.Hold, error) {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil, nil
	}
	return hold, err
}

// shipUnlessBusy reports whether it was called.
func shipUnlessBusy(ctx context.Context, lock *rlock.Lock) (shipped bool, err error) {
	hold, err := tryAcquire(ctx, lock)
	if err != nil {
		return false, err
	}
	if hold == nil {
		return false, nil
	}
	defer hold.UnlockTo(ctx, &err)
	return true, ship(hold.Context())
}

func TestWrapperThatReturnsNil(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	lock, ctx := redis.Client().NewLock("x"), t.Context()
	shipped, err := shipUnlessBusy(ctx, lock)
	require.NoError(t, err)
	require.True(t, shipped)
	redis.Busy("x")
	shipped, err = shipUnlessBusy(ctx, lock)
	require.NoError(t, err)
	require.False(t, shipped)
}

// A MultiLock that is made again from its names releases what its owner holds.
func TestMultiLockIsMadeAgain(t *testing.T) {
	t.Parallel()
	client, ctx := rlocktest.New(t).Client(), rlock.WithOwner(t.Context())
	hold, err := multilock.NewOn(client, "a", "b").Lock(ctx, rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, multilock.NewOn(client, "a", "b").Unlock(ctx))
	require.False(t, hold.Valid())
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	lock, ctx := redis.Client().NewLock("mail:ada"), t.Context()
	hold, err := lock.TryLock(ctx, rlock.NoWait, time.Minute)
	require.NoError(t, err)
	hold.Leave()
	_, err = lock.TryLock(ctx, rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	redis.Advance(time.Minute)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	client, ctx := redis.Client(), t.Context()
	clients := []*rlock.Client{client, rlocktest.New(t).Client(), rlocktest.New(t).Client()}
	for _, lock := range []rlock.Locker{
		client.NewLock("plain"),
		client.NewFairLock("fair"),
		client.NewNonReentrantLock("once"),
		client.NewNonReentrantFairLock("seat"),
		client.NewReadWriteLock("rw").Read(),
		client.NewReadWriteLock("rw").Write(),
		client.NewFencedLock("fenced"),
		multilock.NewOn(client, "a", "b"),
		multilock.NewOn(client, "{class:7}:ada", "{class:7}:bob"),
		multilock.New(client.NewLock("a"), client.NewFairLock("c")),
		redlock.NewOn("red", redlock.Options{}, clients...),
	} {
		hold, err := lock.TryLock(ctx, 3*time.Second, rlock.Watchdog)
		require.NoError(t, err, lock.Name())
		require.NoError(t, hold.Unlock(ctx))
	}
	hold, err := client.NewFencedLock("fenced").Lock(ctx, rlock.Watchdog)
	require.NoError(t, err)
	require.Positive(t, hold.Token())
	require.NoError(t, hold.Unlock(ctx))
}

func TestLooking(t *testing.T) {
	t.Parallel()
	lock, ctx := rlocktest.New(t).Client().NewLock("x"), t.Context()
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	require.NoError(t, err)
	{
		ctx := hold.Context()
		locked, err := lock.IsLocked(ctx)
		require.NoError(t, err)
		require.True(t, locked)
		held, err := lock.IsHeld(ctx)
		require.NoError(t, err)
		require.True(t, held)
		count, err := lock.HoldCount(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		ttl, err := lock.TTL(ctx)
		require.NoError(t, err)
		require.Positive(t, ttl)
	}
	was, err := lock.ForceUnlock(ctx)
	require.NoError(t, err)
	require.True(t, was)
	require.ErrorIs(t, hold.Unlock(ctx), rlock.ErrLost)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	client := redis.NewClient(rlock.Options{
		WatchdogLease: 10 * time.Second,
		NameMapper:    rlock.Prefix("app:"),
	})
	replicated := redis.NewClient(rlock.Options{
		SyncReplicas: rlock.SyncConnected,
	})
	require.Equal(t, "app:x", client.NewLock("x").Name())
	ctx := t.Context()
	hold, err := replicated.NewLock("x").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err, "no replica is connected")
	require.NoError(t, hold.Unlock(ctx))
	require.NoError(t, client.Close(ctx))
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	option, err := rueidis.ParseURL("redis://:secret@10.0.0.1:6379/2")
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1:6379"}, option.InitAddress)
	require.Equal(t, "secret", option.Password)
	require.Equal(t, 2, option.SelectDB)
	option = rueidis.ClientOption{
		InitAddress: []string{"10.0.0.1:26379", "10.0.0.2:26379"},
		Sentinel:    rueidis.SentinelOption{MasterSet: "mymaster"},
	}
	option.DialCtxFn = func(_ context.Context, address string, _ *net.Dialer, _ *tls.Config) (
		net.Conn, error,
	) {
		require.Contains(t, option.InitAddress, address, "it asks the sentinels")
		return nil, net.ErrClosed
	}
	redis, err := rueidis.NewClient(option)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Nil(t, redis)
}

func TestSettingsThatAreNotesInYAML(t *testing.T) {
	t.Parallel()
	config, err := redissonyaml.Load(strings.NewReader("sentinelServersConfig:\n"+
		"  masterName: mymaster\n  sentinelAddresses: [redis://10.0.0.1:26379]\n"+
		"  readMode: SLAVE\nnettyThreads: 32\nuseScriptCache: true\n"), redissonyaml.Options{})
	require.NoError(t, err)
	var keys []string
	for _, note := range config.Notes {
		keys = append(keys, note.Key)
	}
	for _, key := range []string{"readMode", "nettyThreads", "useScriptCache"} {
		require.Contains(t, strings.Join(keys, " "), key)
	}
	require.Equal(t, rlock.SyncConnected, config.Locks.SyncReplicas)
}

// connect makes a client from the file of a service in Java.
func connect(file string) (*rlock.Client, rueidis.Client, error) {
	config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
	if err != nil {
		return nil, nil, err // every line that cannot be followed, and what to do
	}
	redis, err := rueidis.NewClient(config.Redis)
	if err != nil {
		return nil, nil, err
	}
	client, err := rlock.New(redis, config.Locks)
	return client, redis, err
}

func TestYAML(t *testing.T) {
	t.Parallel()
	_, _, err := connect("singleServerConfig: {}")
	require.ErrorContains(t, err, "give address")
}

func TestOrderIsNotShippedWhileSomebodyElseShipsIt(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	redis.Busy("order:42")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, shipOrder(ctx, redis.Client(), "42"), rlock.ErrNotAcquired)
}
