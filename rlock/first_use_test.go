package rlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The first attempt without a wait needs two round trips at most, even if the server does not know
// the script: none of them to open another connection.
func TestFirstUseOfALockOpensNoConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 10 { // rueidis picks one of its connections by chance
		var dials atomic.Int64
		c := newClient(t, s, anonymous, func(o *rueidis.ClientOption) {
			o.PipelineMultiplex = 3
			o.DialCtxFn = func(ctx context.Context, a string, d *net.Dialer, _ *tls.Config,
			) (net.Conn, error) {
				dials.Add(1)
				return d.DialContext(ctx, "tcp", a)
			}
		})
		s.DoString(t, "SCRIPT", "FLUSH")
		dials.Store(0)
		hold, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, time.Minute)
		require.NoError(t, err)
		unlock(t, hold)
		require.Zero(t, dials.Load())
	}
}
