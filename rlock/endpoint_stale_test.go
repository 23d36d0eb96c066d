//go:build redis

package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A server that was a master may be a replica with old data, in which a lock that was acquired
// since is missing. It must not be asked to renew that lock, even while the new master cannot be
// reached.
func TestServerThatWasLeftIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	var down atomic.Bool
	refused := make(chan struct{}, 1000)
	// With another shared connection, the first lock could be acquired on one that is dialed after the
	// move, and the client would not know that the server was left.
	c := newClient(t, master, rlock.Options{WatchdogLease: 15 * time.Second}, at.Use,
		redistest.OneConnection, func(o *rueidis.ClientOption) {
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, a string, d *net.Dialer, c *tls.Config,
			) (net.Conn, error) {
				if down.Load() {
					select {
					case refused <- struct{}{}:
					default:
					}
					return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
				}
				return dial(ctx, a, d, c)
			}
		})
	unlock(t, take(t, c.NewLock("first"), time.Minute))
	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	unlock(t, acquired(t, lockInBackground(t.Context(), c.NewLock("first"), time.Minute)))
	master.Do(t, "REPLICAOF", "127.0.0.1", "1")         // its link to the new master breaks
	hold := take(t, c.NewLock("order"), rlock.Watchdog) // in the new master only
	down.Store(true)
	replicas[0].Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	for range 3 {
		receive(t, refused, "nothing is tried")
	}
	info, err := c.NewLock("order").Info(t.Context())
	require.True(t, err != nil || info.Locked, "the old master has replied")
	require.NoError(t, hold.Err())
	down.Store(false)
	require.NoError(t, hold.Unlock(context.Background()))
	require.False(t, exists(replicas[0], "order"))
}
