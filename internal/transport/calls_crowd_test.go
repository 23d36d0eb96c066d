//go:build !race

package transport

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wait"
)

// countedConn counts the system calls that write to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Writing costs more than all else that a command costs here. The race detector shuffles which
// goroutine runs next, and the commands are written together without our doing.
func TestCommandsOfACrowdAreWrittenTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a second P runs the writer early at times
	s := redistest.Start(t)
	var writes atomic.Int64
	client := s.Client(t, redistest.OneConnection, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(
			ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
		) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			return countedConn{conn, &writes}, err
		}
	})
	group := wait.NewGroup()
	defer group.Wait()
	c := NewCalls(group, timeout, false)
	const callers, cycles = 4 * crowd, 100
	written := func() (together float64) {
		before := writes.Load()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range cycles {
					_, state, err := Do(c, Acquire, unlimited(t), func(ctx context.Context) (int, error) {
						return 0, client.Do(ctx, client.B().Ping().Build()).Error()
					}, nil)
					assert.Equal(t, Executed, state, err)
				}
			})
		}
		all.Wait()
		return callers * cycles / float64(writes.Load()-before)
	}
	written() // workers send the first ones
	const least = crowd / 2
	best := 0.0
	for try := 0; try < 10 && best < least; try++ {
		best = max(best, written())
	}
	require.GreaterOrEqual(t, best, float64(least), "commands in a write")
}
