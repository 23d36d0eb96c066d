package rlock_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// variants are ways to set up a rueidis client that change how it talks to the server.
var variants = map[string]func(*rueidis.ClientOption){
	"as it comes":           func(*rueidis.ClientOption) {},
	"AlwaysRESP2":           resp2,
	"DisableAutoPipelining": func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
	"AlwaysPipelining":      func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
	"PipelineMultiplex":     func(o *rueidis.ClientOption) { o.PipelineMultiplex = 4 },
	"RESP2 not pipelined": func(o *rueidis.ClientOption) {
		resp2(o)
		o.DisableAutoPipelining = true
	},
	"ForceSingleClient": func(o *rueidis.ClientOption) { o.ForceSingleClient = true },
}

func resp2(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }

// requireAllBasics requires that clients, made by newRedis, nest, wait, are woken and renewed. Leases of the watchdog are
// real time.
func requireAllBasics(t *testing.T, newRedis func() rueidis.Client, renewed bool) {
	t.Helper()
	const lease = 300 * time.Millisecond
	mine := newClientOn(t, newRedis(), rlock.Options{WatchdogLease: lease}).NewLock(t.Name())
	theirs := newClientOn(t, newRedis(), rlock.Options{WatchdogLease: lease}).NewLock(t.Name())

	outer := take(t, mine, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, mine, rlock.Watchdog)
	count, err := theirs.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, count.Count)
	_, err = theirs.TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	_, err = theirs.TryLock(t.Context(), 50*time.Millisecond, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	if renewed {
		require.Never(t, func() bool { return !outer.Valid() }, 3*lease, lease/10, "not renewed")
	}
	unlock(t, inner)
	unlock(t, outer)

	// A lease that outlasts the test: only a message can wake the waiter in time. Without one it would look after 5 s.
	// The machine may be busy, so not every wake-up need be quick.
	bystander := newClientOn(t, newRedis(), rlock.Options{}).NewLock(t.Name())
	quick := 0
	for try := 0; try < 6 && quick < 2; try++ {
		hold := take(t, mine, time.Minute)
		waiter := lockInBackground(t.Context(), theirs, time.Minute)
		_, err = bystander.TryLock(t.Context(), 100*time.Millisecond, time.Minute) // by then the waiter listens
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		start := time.Now()
		unlock(t, hold)
		o := result(t, waiter)
		require.NoError(t, o.err)
		if o.at.Sub(start) < 50*time.Millisecond {
			quick++
		}
		unlock(t, o.hold)
	}
	require.Equal(t, 2, quick, "waiters are not woken")
}

func TestLocksWorkWithEveryKindOfRueidisClient(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			requireAllBasics(t, func() rueidis.Client { return s.Client(t, variant) }, true)
			require.Zero(t, s.DoInt(t, "DBSIZE"))
		})
	}
}

func TestLocksWorkOverTLSWithAPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithTLS(), redistest.WithPassword("secret"))
	requireAllBasics(t, func() rueidis.Client { return s.Client(t) }, true)
}

// wrapped is a rueidis client inside another type, as hooks and tracing make them.
type wrapped struct {
	rueidis.Client
}

func TestLocksWorkWithAWrappedClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	requireAllBasics(t, func() rueidis.Client { return wrapped{s.Client(t)} }, true)
}

// The clock of miniredis stands still, so nothing is learnt about leases here.
func TestLocksWorkOnMiniredis(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	requireAllBasics(t, func() rueidis.Client {
		option := rueidis.ClientOption{InitAddress: []string{s.Addr()}}
		resp2(&option)
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		return redis
	}, false)
}
