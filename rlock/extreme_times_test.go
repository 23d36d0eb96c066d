package rlock_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Each duration may be as short as it is allowed to be, and as long as a Duration can be: sums of
// durations must not overflow.
func TestExtremeTimes(t *testing.T) {
	t.Parallel()
	const longest = time.Duration(math.MaxInt64)
	for name, of := range map[string]struct {
		least time.Duration
		set   func(*rlock.Options, time.Duration)
	}{
		"WatchdogLease": {10 * time.Millisecond, func(o *rlock.Options, d time.Duration) {
			o.WatchdogLease = d
		}},
		"CommandTimeout": {time.Millisecond, func(o *rlock.Options, d time.Duration) {
			o.CommandTimeout = d
		}},
		"FairWindow": {10 * time.Second, func(o *rlock.Options, d time.Duration) { o.FairWindow = d }},
		"SyncTimeout": {time.Millisecond, func(o *rlock.Options, d time.Duration) {
			o.SyncTimeout = d
		}},
		"MaxHold": {time.Minute, func(o *rlock.Options, d time.Duration) { o.MaxHold = d }},
		"all": {time.Minute, func(o *rlock.Options, d time.Duration) {
			o.WatchdogLease, o.CommandTimeout, o.FairWindow, o.SyncTimeout = d, d, d, d
		}},
	} {
		for _, d := range []time.Duration{of.least, longest / 2, longest} {
			for _, synced := range []int{0, 1} {
				if synced == 1 && name != "all" && name != "CommandTimeout" {
					continue // it makes no difference
				}
				t.Run(name+" "+d.String(), func(t *testing.T) {
					onEveryKind(t, func(t *testing.T, k kind) {
						options := rlock.Options{SyncReplicas: synced}
						of.set(&options, d)
						inBubbleWith(t, func(*rueidis.ClientOption) {}, options,
							func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
								replicas(b, true)
								b.reply("identify.lua", func(args []string) any {
									if strings.HasPrefix(args[1], "-") {
										t.Error("it expires at once")
									}
									return 1
								})
								requireWorks(t, b, k, c)
							})
					})
				})
			}
		}
	}
}

// requireWorks requires that a lock can be taken in all ways, for leases of all lengths, and that
// one that others hold is waited for.
func requireWorks(t *testing.T, b *bubble, k kind, c *rlock.Client) {
	t.Helper()
	lock := k.lock(c, "lock")
	const longest = time.Duration(math.MaxInt64)
	for _, wait := range []time.Duration{rlock.NoWait, 1, time.Second, longest - 1, rlock.Forever} {
		for _, lease := range []time.Duration{rlock.Watchdog, time.Second, longest - 1} {
			hold, err := lock.TryLock(t.Context(), wait, lease)
			require.NoError(t, err, "wait %v, lease %v", wait, lease)
			require.Positive(t, time.Until(hold.Deadline()))
			require.NoError(t, hold.Extend(t.Context(), time.Minute))
			nested, err := lock.TryLock(hold.Context(), wait, lease)
			require.NoError(t, err)
			unlock(t, nested)
			require.NoError(t, hold.Err())
			unlock(t, hold)
		}
	}
	_, err := lock.Info(t.Context())
	require.NoError(t, err)
	b.reply(k.acquire, heldFor(30_000))
	start := time.Now()
	_, err = lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Equal(t, time.Second, time.Since(start))
	b.reply(k.acquire, granted[k.acquire])
}

func TestMaxHoldIsAtLeastTwiceALeaseHoweverLong(t *testing.T) {
	redis := redistest.Start(t).Client(t)
	_, err := rlock.New(redis, rlock.Options{WatchdogLease: math.MaxInt64, MaxHold: time.Hour})
	require.ErrorIs(t, err, rlock.ErrInvalid)
}
