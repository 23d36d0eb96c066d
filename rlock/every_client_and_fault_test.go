//go:build redis

package rlock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/locktest"
	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// requireAllBasics requires that clients, made by newRedis, nest, wait, are woken and renewed, with
// every kind of lock. Without renewed the server's clock may stand still.
func requireAllBasics(t *testing.T, newRedis func() rueidis.Client, renewed bool) {
	t.Helper()
	options := rlock.Options{WatchdogLease: 6 * time.Second}
	if !renewed { // where the clock stands still, precedence never ends
		options.WriterPreference = rlock.PreferNobody
	}
	mine, theirs := newClientOn(t, newRedis(), options), newClientOn(t, newRedis(), options)
	var holds []*rlock.Hold
	for _, k := range kinds { // all are taken before their renewals are awaited
		outer := take(t, k.lock(mine, k.name), rlock.Watchdog)
		unlock(t, takeWith(outer.Context(), t, k.lock(mine, k.name), rlock.Watchdog))
		requireRefusedAfter(t, 200*time.Millisecond, k.contender(theirs, k.name))
		holds = append(holds, outer)
	}
	if renewed {
		waitForRenewal(t, holds)
	}
	for i, k := range kinds {
		waiter := lockInBackground(t.Context(), k.contender(theirs, k.name), rlock.Lease(time.Minute))
		time.Sleep(100 * time.Millisecond) // by then it listens
		start := time.Now()
		unlock(t, holds[i])
		o := result(t, waiter)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(start), locktest.Missed, "the %s lock woke nobody", k.name)
		unlock(t, o.Hold)
	}
}

func TestLocksWorkWithEveryKindOfRueidisClient(t *testing.T) {
	t.Parallel()
	resp2 := func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }
	for name, variant := range map[string]func(*rueidis.ClientOption){
		"AlwaysRESP2":       resp2,
		"AlwaysPipelining":  func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"PipelineMultiplex": func(o *rueidis.ClientOption) { o.PipelineMultiplex = 4 },
		"RESP2 not pipelined": func(o *rueidis.ClientOption) {
			resp2(o)
			o.DisableAutoPipelining = true
		},
		"ForceSingleClient":               func(o *rueidis.ClientOption) { o.ForceSingleClient = true },
		"in another type, as of a tracer": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			requireAllBasics(t, func() rueidis.Client {
				if variant == nil {
					return struct{ rueidis.Client }{s.Client(t)}
				}
				return s.Client(t, variant)
			}, true)
		})
	}
}

// The clock of miniredis stands still, so this shows nothing about leases.
func TestLocksWorkOnMiniredis(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	requireAllBasics(t, func() rueidis.Client {
		redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()},
			AlwaysRESP2: true, DisableCache: true})
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		return redis
	}, false)
}

// Scripts use no key that their caller does not declare, but for those that say so to Dragonfly.
func TestKindsUseOnlyDeclaredKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithScripts(luashim.Declared))
	requireAllBasics(t, func() rueidis.Client { return s.Client(t) }, true)
	c := newClient(t, s, rlock.Options{})
	for _, k := range slices.Concat(kinds, nonReentrant()) {
		take(t, k.lock(c, k.name), rlock.Lease(time.Minute))
		_, err := k.lock(c, k.name).ForceUnlock(t.Context())
		require.NoError(t, err)
	}
}

// Whatever happens to the server: an attempt without wait reports what is wrong, and one with wait
// acquires the lock when the fault is over, unless it may never be.
func TestEveryFaultIsReportedAndOutlasted(t *testing.T) {
	t.Parallel()
	for what, f := range faults.All() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, f.Options...)
			c, p := proxied(t, s, rlock.Options{})
			lock := c.NewLock("order")
			v := &faults.Victim{Server: s, Proxy: p, Lock: "order"}
			v.ForceUnlock = func(t testing.TB) {
				_, err := lock.ForceUnlock(t.Context())
				require.NoError(t, err)
			}
			warm(t, c, "order")

			f.Begin(t, v)
			hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			var reply *rlock.ServerError
			switch f.Effect {
			case faults.Nothing: // or a connection or a dial broke just then
				if err == nil {
					err = hold.Unlock()
				}
				if err != nil && !errors.Is(err, rlock.ErrOutcomeUnknown) {
					require.ErrorAs(t, err, &reply)
					require.Equal(t, rlock.ClassTemporary, reply.Class)
				}
			case faults.NoReply:
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorAs(t, err, &reply)
				require.NotEmpty(t, reply.Advice)
			case faults.ForNow:
				requireRefusal(t, err, f.Code)
			case faults.ForGood:
				requireRefusal(t, err, f.Code)
				requireRefusedAtOnce(t, lock, f.Code)
			case faults.Held:
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			var waiter <-chan outcome
			if f.Effect != faults.ForGood {
				waiter = lockInBackground(t.Context(), lock, longLease)
			}
			f.End(t, v)
			if waiter == nil {
				waiter = lockInBackground(t.Context(), lock, longLease)
			}
			unlock(t, acquired(t, waiter))
			waitUntilFree(t, s, "order")

		})
	}
}
