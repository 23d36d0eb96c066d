package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/transport"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// The keys of renew.lua are the first arguments, then the lease, then the owners.
func renewedKeys(args []string) []string { return args[:len(args)/2] }

// takeAll takes locks with these names.
func (b *bubble) takeAll(t *testing.T, names ...string) (holds []*rlock.Hold) {
	t.Helper()
	for _, name := range names {
		holds = append(holds, take(t, b.client.NewLock(name), rlock.Watchdog))
	}
	return holds
}

func TestLockWhoseRenewalIsRejectedCostsNoOtherItsLease(t *testing.T) {
	for _, rejection := range []string{
		"NOPERM No permissions to access a key",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"MOVED 1 127.0.0.1:1",
		"ERR user_script:12: something went wrong",
	} {
		t.Run(rejection, func(t *testing.T) {
			var log logtest.Lines
			options := rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()}
			inBubble(t, options, func(t *testing.T, b *bubble) {
				b.reply("renew.lua", func(args []string) any {
					if slices.Contains(renewedKeys(args), "bad") {
						return errors.New(rejection)
					}
					return renewed(len(renewedKeys(args)))
				})
				bad := take(t, b.client.NewLock("bad"), rlock.Watchdog)
				others := b.takeAll(t, "a", "b", "c")
				time.Sleep(time.Minute)
				for _, hold := range others {
					require.NoError(t, hold.Err())
				}
				require.ErrorIs(t, bad.Err(), rlock.ErrExpired)
				require.ErrorContains(t, bad.Err(), "Redis rejected the renewal: ")
				warned := log.With("lock not renewed")
				require.Len(t, warned, 1)
				require.Contains(t, warned[0], "lock=bad")
				require.NoError(t, others[0].Unlock())
			})
		})
	}
}

// One command more for each lock would change nothing.
func TestRejectionThatConcernsTheWholeServerIsNotTriedLockByLock(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		b.takeAll(t, "a", "b", "c")
		b.reply("renew.lua", func(args []string) any {
			if len(renewedKeys(args)) != 3 {
				t.Errorf("a command for %q", renewedKeys(args))
			}
			return errors.New("LOADING Redis is loading the dataset in memory")
		})
		time.Sleep(20 * time.Second)
		require.NotEmpty(t, b.called("renew.lua"))
	})
}

// Redis Software and Redis Cloud look like one node, and have slots behind it.
func TestServerThatLooksAtSlotsGetsOneRenewalForEach(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		var rejected atomic.Int64
		b.reply("renew.lua", func(args []string) any {
			keys := renewedKeys(args)
			for _, key := range keys {
				if wire.Slot(key) != wire.Slot(keys[0]) {
					rejected.Add(1)
					return errors.New("CROSSSLOT Keys in request don't hash to the same slot")
				}
			}
			return renewed(len(keys))
		})
		var names []string
		for i := range 5 {
			names = append(names, fmt.Sprintf("{%d}a", i), fmt.Sprintf("{%d}b", i))
		}
		holds := b.takeAll(t, names...)
		time.Sleep(25 * time.Second) // two periods
		before, tries := len(b.called("renew.lua")), rejected.Load()
		time.Sleep(10 * time.Second)
		require.Len(t, b.called("renew.lua"), before+5)
		require.Equal(t, tries, rejected.Load(), "it is tried again in vain")
		time.Sleep(10 * time.Minute)
		for _, hold := range holds {
			require.NoError(t, hold.Err())
		}
	})
}

func TestRenewalOfNestedLevelsTakesMemoryInProportionToTheirNumber(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		const levels = 1000
		ctx := t.Context()
		holds := make([]*rlock.Hold, levels)
		for i := range holds {
			holds[i] = takeWith(ctx, t, b.lock, rlock.Watchdog)
			ctx = holds[i].Context() //nolint:fatcontext // the levels are nested
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		time.Sleep(71 * time.Second)
		runtime.ReadMemStats(&after)
		require.NotEmpty(t, b.called("renew.lua"))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(levels*1300), "bytes")
		require.NoError(t, holds[0].Err())
	})
}

// Renewals, releases and inspections need no connection of their own, and have capacity that
// acquisitions cannot use up: see [transport.Kind].

// inBubbleWith is inBubble for a rueidis client with other options. WAIT takes its time-out and
// finds no replica, except for the first acquisition.
func inBubbleWith(t *testing.T, change func(*rueidis.ClientOption), options rlock.Options,
	test func(*testing.T, *bubble, rueidis.Client, *rlock.Client),
) {
	t.Helper()
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		option := b.server.ClientOption()
		change(&option)
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		defer redis.Close()
		client := newClientOn(t, redis, options)
		defer closeClient(t, client)
		test(t, b, redis, client)
	})
}

// replicas makes WAIT find a replica or, after its time-out, none.
func replicas(b *bubble, up bool) {
	b.server.Handle("WAIT", func(args []string) any {
		if up {
			return 1
		}
		timeout, _ := strconv.Atoi(args[2])
		time.Sleep(time.Duration(timeout) * time.Millisecond)
		return 0
	})
}

// requireQuick requires that what concerns a hold, and an inspection, need no time at all.
func requireQuick(t *testing.T, hold *rlock.Hold, l *rlock.Lock) {
	t.Helper()
	start := time.Now()
	require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Minute)))
	_, err := l.Info(t.Context())
	require.NoError(t, err)
	unlock(t, hold)
	require.Less(t, time.Since(start), 50*time.Millisecond)
}

func TestAcquisitionsThatWaitForAReplicaDelayNeitherRenewalsNorReleases(t *testing.T) {
	t.Parallel()
	options := rlock.Options{SyncReplicas: 1, WatchdogLease: 3 * time.Second}
	inBubbleWith(t, func(*rueidis.ClientOption) {}, options,
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			replicas(b, true)
			kept, short := take(
				t,
				c.NewLock("kept"),
				rlock.Watchdog,
			), take(
				t,
				c.NewLock("short"),
				rlock.Lease(time.Hour),
			)
			replicas(b, false)
			for range 6 * 600 {
				go func() {
					_, _ = c.NewLock("busy").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
				}()
				time.Sleep(time.Second / 600)
			}
			require.NoError(t, kept.Err())
			requireQuick(t, short, c.NewLock("short"))
			unlock(t, kept)
		})
}

// The application may use up the pool of connections that rueidis keeps for blocking commands.
func TestPoolUsedUpByTheApplicationCostsNoLock(t *testing.T) {
	t.Parallel()
	for _, syncReplicas := range []int{0, 1} {
		options := rlock.Options{SyncReplicas: syncReplicas, WatchdogLease: 800 * time.Millisecond}
		change := func(o *rueidis.ClientOption) {
			o.DisableAutoPipelining, o.BlockingPoolSize = syncReplicas == 0, 2
		}
		inBubbleWith(t, change, options,
			func(t *testing.T, b *bubble, redis rueidis.Client, c *rlock.Client) {
				replicas(b, true)
				freed := make(chan struct{})
				defer close(freed)
				b.server.Handle("BLPOP", func([]string) any { <-freed; return nil })
				hold := take(t, c.NewLock("kept"), rlock.Watchdog)
				short := take(t, c.NewLock("short"), rlock.Lease(time.Hour))
				for range 2 {
					go redis.Do(context.Background(), redis.B().Blpop().Key("jobs").Timeout(0).Build())
				}
				synctest.Wait()
				for range 3 * 300 {
					go func() {
						_, _ = c.NewLock("busy").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
					}()
					time.Sleep(10 * time.Millisecond)
				}
				require.NoError(t, hold.Err())
				requireQuick(t, short, c.NewLock("short"))
				unlock(t, hold)
			})
	}
}

func TestLeaseOfALockForReplicasCountsFromWhenAConnectionWasFree(t *testing.T) {
	t.Parallel()
	change := func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 }
	inBubbleWith(t, change, rlock.Options{SyncReplicas: 1},
		func(t *testing.T, b *bubble, redis rueidis.Client, c *rlock.Client) {
			replicas(b, true)
			b.server.Handle("BLPOP", func([]string) any { time.Sleep(1900 * time.Millisecond); return nil })
			go redis.Do(context.Background(), redis.B().Blpop().Key("jobs").Timeout(0).Build())
			synctest.Wait()
			hold := take(t, c.NewLock("order"), rlock.Lease(2*time.Second))
			require.GreaterOrEqual(t, time.Since(b.start), 1900*time.Millisecond)
			require.Greater(t, time.Until(hold.Deadline()), 1900*time.Millisecond)
			unlock(t, hold)
		})
}

// An acquisition that waits for replicas has a connection of the pool. It tries up to five: some
// may have been closed while they were idle.
func TestAcquisitionOutlastsFourClosedConnectionsOfThePool(t *testing.T) {
	t.Parallel()
	inBubbleWith(t, func(*rueidis.ClientOption) {}, rlock.Options{SyncReplicas: 1},
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			replicas(b, true)
			b.reply("acquire.lua", func([]string) any {
				if len(b.called("acquire.lua")) < transport.MostSends {
					b.server.Disconnect()
				}
				return nil
			})
			hold, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
			require.NoError(t, err)
			unlock(t, hold)
		})
}
