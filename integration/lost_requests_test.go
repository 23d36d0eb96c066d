package integration_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// behind starts a server with two clients: far, behind a network of its own, and near.
func behind(t *testing.T) (servers *integration.Servers, network *faultproxy.Proxy,
	far, near *rlock.Client) {
	t.Helper()
	servers = integration.Start(t, integration.Single)
	network = faultproxy.Start(t, servers.Masters(t)[0].Addr())
	far, err := rlock.New(servers.Client(t, network.Use, redistest.OneConnection), rlock.Options{
		CommandTimeout: commandTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, network.Heal())
		locktest.CloseClient(t, far)
	})
	return servers, network, far, newClient(t, servers.Client(t), "")
}

// commandTimeout is that of the client behind the network: how long it waits for the reply to a
// lost request.
const commandTimeout = 2 * time.Second

func TestAcquisitionWhoseRequestsAreLostIsUnknownInTimeAndLeavesTheLockFree(t *testing.T) {
	t.Parallel()
	servers, network, far, near := behind(t)
	locktest.Unlock(t, locktest.Acquire(t, far.NewLock("job"), longLease)) // connects it
	network.DropRequests()
	locktest.Within(t, commandTimeout+soon, func() {
		_, err := far.NewLock("job").TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	})
	require.Zero(t, servers.Masters(t)[0].DoInt(t, "EXISTS", "job"))
	locktest.Unlock(t, locktest.Acquire(t, near.NewLock("job"), longLease))

	require.NoError(t, network.Heal())
	// Its connection has been reset, which the next request finds out. A waiter then asks again.
	locktest.Unlock(t, locktest.Acquired(t,
		locktest.LockInBackground(t.Context(), far.NewLock("job"), longLease)))
	requireHandedOver(t, servers, far.NewLock("job"), near.NewLock("job"), "job")
	requireHandedOver(t, servers, near.NewLock("job"), far.NewLock("job"), "job")
}

func TestReleaseWhoseRequestsAreLostIsUnconfirmedAndTheLockIsFreeWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	const lease = 8 * time.Second
	_, network, far, near := behind(t)
	hold := locktest.Acquire(t, far.NewLock("job"), lease)
	acquired := time.Now()
	network.DropRequests()
	locktest.Within(t, commandTimeout+soon, func() {
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	})
	require.False(t, hold.Valid())
	_, err := near.NewLock("job").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired, "the release arrived, so this tests nothing")
	next := locktest.Result(t,
		locktest.LockInBackground(t.Context(), near.NewLock("job"), longLease))
	require.NoError(t, next.Err)
	require.Less(t, next.At.Sub(acquired), lease+soon)

	// The first client's cleanup concerns its own lock only.
	require.NoError(t, network.Heal())
	locktest.Unlock(t, locktest.Acquired(t,
		locktest.LockInBackground(t.Context(), far.NewLock("another"), longLease)))
	require.True(t, next.Hold.Valid())
	locktest.Unlock(t, next.Hold)
}

func TestSlowNetworkDelaysWakeUpsByItsOwnTimeOnlyAndIsCountedAgainstTheHold(t *testing.T) {
	t.Parallel()
	const (
		delay = 50 * time.Millisecond // each way
		lease = 10 * time.Second
	)
	servers, network, far, near := behind(t)
	network.Delay(delay)
	hold := locktest.Acquire(t, far.NewLock("job"), lease)
	answered := time.Now()
	require.True(t, hold.Valid())
	// Its lease runs from before the request was sent, which was two delays ago at the latest.
	require.LessOrEqual(t, hold.Deadline(), answered.Add(lease-watchdog.Drift(lease)-2*delay))
	locktest.Unlock(t, hold)

	requireHandedOver(t, servers, near.NewLock("job"), far.NewLock("job"), "job")
	requireHandedOver(t, servers, far.NewLock("job"), near.NewLock("job"), "job")
}
