package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Renewals, releases and inspections need no connection of their own, and have capacity that
// acquisitions cannot use up: see DESIGN.md, rule 4.

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
	require.NoError(t, hold.Extend(t.Context(), time.Minute))
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
			kept, short := take(t, c.NewLock("kept"), rlock.Watchdog), take(t, c.NewLock("short"), time.Hour)
			replicas(b, false)
			for range 6 * 600 {
				go func() { _, _ = c.NewLock("busy").TryLock(t.Context(), rlock.NoWait, time.Minute) }()
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
	for name, of := range map[string]struct {
		change  func(*rueidis.ClientOption)
		options rlock.Options
	}{
		"pipelining": {func(*rueidis.ClientOption) {}, rlock.Options{}},
		"no pipelining": {
			func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true }, rlock.Options{},
		},
		"replicas": {func(*rueidis.ClientOption) {}, rlock.Options{SyncReplicas: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			of.options.WatchdogLease = 800 * time.Millisecond
			change := func(o *rueidis.ClientOption) { of.change(o); o.BlockingPoolSize = 2 }
			inBubbleWith(t, change, of.options,
				func(t *testing.T, b *bubble, redis rueidis.Client, c *rlock.Client) {
					replicas(b, true)
					freed := make(chan struct{})
					defer close(freed)
					b.server.Handle("BLPOP", func([]string) any { <-freed; return nil })
					hold := take(t, c.NewLock("kept"), rlock.Watchdog)
					short := take(t, c.NewLock("short"), time.Hour)
					for range 2 {
						go redis.Do(context.Background(), redis.B().Blpop().Key("jobs").Timeout(0).Build())
					}
					synctest.Wait()
					for range 3 * 300 {
						go func() { _, _ = c.NewLock("busy").TryLock(t.Context(), rlock.NoWait, time.Minute) }()
						time.Sleep(10 * time.Millisecond)
					}
					require.NoError(t, hold.Err())
					requireQuick(t, short, c.NewLock("short"))
					unlock(t, hold)
				})
		})
	}
}
