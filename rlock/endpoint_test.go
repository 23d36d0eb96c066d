//go:build redis

package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLocksFollowAnEndpointThatMoves(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	options := rlock.Options{WatchdogLease: 6 * time.Second}
	holder := newClient(t, master, options, at.Use)
	waiting := newClient(t, master, options, at.Use)
	idle := newClient(t, master, options, at.Use)
	of := []kind{kindNamed("reentrant"), kindNamed("fair"), kindNamed("read")}
	var renewed, explicit []*rlock.Hold
	var waiters []<-chan outcome
	for _, k := range of {
		renewed = append(renewed, take(t, k.lock(holder, "renewed "+k.name), rlock.Watchdog))
		explicit = append(explicit, take(t, k.contender(holder, k.name), rlock.Lease(time.Minute)))
		waiters = append(waiters,
			lockInBackground(t.Context(), k.lock(waiting, k.name), rlock.Lease(time.Minute)))
		k.waitForListeners(t, master, k.name, 1)
	}
	unlock(t, take(t, idle.NewLock("idle"), rlock.Lease(time.Minute)))

	redistest.Promote(t, master, replicas[0])
	early := lockInBackground(t.Context(), idle.NewLock("early"), rlock.Lease(time.Minute))
	eventually(t, func() bool {
		info, err := master.Call("INFO", "errorstats")
		text, _ := info.(string)
		return err == nil && strings.Contains(text, "errorstat_READONLY")
	}, "the old master rejects no write")
	at.Move(replicas[0])

	unlock(t, acquired(t, early))
	for _, k := range of { // messages come from the server that has the locks now
		k.waitForListeners(t, replicas[0], k.name, 1)
		eventually(t, func() bool {
			hold, err := k.lock(idle, "no wait "+k.name).
				TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
			return err == nil && hold.Unlock() == nil
		}, "it does not succeed without a wait")
	}
	waitForRenewal(t, renewed)
	for i, k := range of {
		require.NoError(t, explicit[i].Extend(t.Context(), rlock.Lease(time.Minute)), k.name)
		unlock(t, explicit[i])
		next := acquired(t, waiters[i])
		require.Equal(t, k.hash(next.Owner(), 1), replicas[0].DoMap(t, "HGETALL", k.name))
		unlock(t, next)
		unlock(t, renewed[i])
	}
}

// fillPool opens connections of the client's pool, which stay with the server that they lead to.
func fillPool(t *testing.T, redis rueidis.Client) {
	t.Helper()
	for range 3 {
		application, release := redis.Dedicate()
		require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())
		defer release()
	}
}

func TestReplicatedLocksFollowAnEndpointThatMoves(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 2)
	at := redistest.NewEndpoint(master)
	redis := master.Client(t, at.Use)
	c := newClientOn(t, redis, rlock.Options{SyncReplicas: 1, SyncTimeout: enough})
	unlock(t, take(t, c.NewLock("order"), rlock.Lease(time.Minute)))
	fillPool(t, redis)
	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	redistest.WaitForReplica(t, replicas[0], master)
	hold, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
	require.NoError(t, err)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, counts(t, replicas[0]))
	unlock(t, hold)
}

func TestEndpointIsFollowedOnceThePoolHasAConnection(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	redis := master.Client(t, at.Use, redistest.OneConnection,
		func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	c := newClientOn(t, redis, rlock.Options{})
	hold := take(t, c.NewLock("order"), rlock.Lease(time.Minute))
	application, release := redis.Dedicate()
	require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())

	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	_, err := c.NewLock("another").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
	requireRefusal(t, err, "READONLY")
	waiter := lockInBackground(t.Context(), c.NewLock("another"), rlock.Lease(time.Minute))
	release()
	unlock(t, acquired(t, waiter))
	unlock(t, hold)
}

// A server that was a master may be a replica with old data, in which a lock that was acquired
// since is missing. It must not be asked to renew that lock, even while the new master cannot be
// reached.
func TestServerThatWasLeftIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	var down atomic.Bool
	refused := make(chan struct{}, 10_000)
	// With another shared connection, the first lock could be acquired on one that is dialed after the
	// move, and the client would not know that the server was left.
	c := newClient(t, master, rlock.Options{WatchdogLease: 15 * time.Second}, at.Use,
		redistest.OneConnection, func(o *rueidis.ClientOption) {
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, a string, d *net.Dialer, c *tls.Config,
			) (net.Conn, error) {
				if down.Load() {
					refused <- struct{}{}
					return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
				}
				return dial(ctx, a, d, c)
			}
		})
	unlock(t, take(t, c.NewLock("first"), rlock.Lease(time.Minute)))
	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	unlock(t, acquired(t, lockInBackground(t.Context(), c.NewLock("first"), rlock.Lease(time.Minute))))
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
	require.NoError(t, hold.Unlock())
	require.False(t, exists(replicas[0], "order"))
}

// Close leaves the hold, and its release must still find the master.
func TestHoldOfAClosedClientIsReleasedAfterItsEndpointHasMoved(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	c := newClient(t, master, rlock.Options{}, at.Use)
	hold := take(t, c.NewLock("order"), rlock.Lease(time.Minute))
	another := take(t, c.NewLock("another"), rlock.Lease(time.Minute))
	closeClient(t, c)
	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	unlock(t, hold)
	unlock(t, another)
	requireFree(t, replicas[0], "order")
}

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
		hold, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
		require.NoError(t, err)
		unlock(t, hold)
		require.Zero(t, dials.Load())
	}
}
