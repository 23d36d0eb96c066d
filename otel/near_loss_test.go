package holdfastotel_test

import (
	"crypto/sha1"
	"encoding/hex"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"holdfast/internal/fakeredis"
	"holdfast/internal/locktest"
	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// Time is exact here: on a real server, a busy machine may lose the lock instead.
func TestNearLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 6 * time.Second
		server, s, answer := fakeredis.New(), newSignals(), make(chan struct{})
		defer server.Close()
		renewal := hash("renew.lua")
		replies := map[string]any{hash("acquire.lua"): nil, renewal: []any{1},
			hash("release.lua"): []any{1, ""}, hash("release_only.lua"): []any{1, ""}}
		server.Handle("EVALSHA", func(args []string) any {
			if args[1] == renewal {
				<-answer
			}
			return replies[args[1]]
		})
		redis, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer redis.Close()
		c, err := rlock.New(redis, rlock.Options{Server: "fake", WatchdogLease: lease, Tracer: s,
			CommandTimeout: 2 * lease, Anonymous: true, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer locktest.CloseClient(t, c)

		hold := locktest.Acquire(t, c.NewLock("order"), rlock.Watchdog)
		time.Sleep(lease * 93 / 100)
		close(answer)
		synctest.Wait()
		series := text(attribute.NewSet(holdfastotel.AttrKind.String("reentrant"),
			holdfastotel.AttrServer.String("fake")))
		near := func() (n uint64) {
			used := s.histogram(t, "holdfast.lock.lease.utilization")[series]
			for i, bound := range used.Bounds {
				if bound >= .9 {
					n += used.BucketCounts[i+1]
				}
			}
			return n
		}
		require.EqualValues(t, 1, near())
		require.NoError(t, hold.Err())
		require.Empty(t, s.lost(t))
		margin := s.histogram(t, "holdfast.lock.deadline.margin")[series]
		least, _ := margin.Min.Value()
		require.Less(t, least, lease.Seconds()/10)
		locktest.Unlock(t, hold)
		require.EqualValues(t, 1, near())
	})
}

// hash returns by which EVALSHA knows a script.
func hash(file string) string {
	sum := sha1.Sum([]byte(locktest.Scripts()[file]))
	return hex.EncodeToString(sum[:])
}
