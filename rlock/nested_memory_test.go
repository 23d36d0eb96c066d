package rlock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func TestRenewalOfNestedLevelsTakesMemoryInProportionToTheirNumber(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		const levels = 2000
		ctx := t.Context()
		holds := make([]*rlock.Hold, levels)
		for i := range holds {
			holds[i] = takeWith(ctx, t, b.lock, rlock.Watchdog)
			ctx = holds[i].Context() //nolint:fatcontext // the levels are nested
		}
		allocated := func(during func()) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			during()
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		first := allocated(func() { time.Sleep(11 * time.Second) })
		require.Less(t, first, uint64(levels*1000), "bytes at the first renewal")
		later := allocated(func() { time.Sleep(time.Minute) })
		require.Less(t, later, uint64(levels*300), "bytes at six later renewals")
		require.NotEmpty(t, b.called("renew.lua"))
		t.Logf("%d bytes at the first renewal, %d at six more", first, later)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
	})
}
