//go:build redis

package goredis_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/goredis"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// checkSameKey acquires a lock with the options, and looks for its key with a go-redis client.
func checkSameKey[O goredis.Options](t *testing.T, seenBy redis.UniversalClient, options O) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, seenBy.Close()) })
	forLocks, err := goredis.NewClient(options)
	require.NoError(t, err)
	t.Cleanup(forLocks.Close)
	client, err := rlock.New(forLocks, rlock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, client) })

	hold := locktest.Acquire(t, client.NewLock("orders"), rlock.Watchdog)
	owners, err := seenBy.HGetAll(t.Context(), "orders").Result()
	require.NoError(t, err)
	require.Len(t, owners, 1)
	locktest.Unlock(t, hold)
	require.Zero(t, seenBy.Exists(t.Context(), "orders").Val())
}

func TestSingleServerWithTLSUserAndDatabase(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithTLS(), redistest.WithPassword("default's"),
		redistest.WithUser("shop", "secret"))
	options := &redis.Options{
		Addr: server.Addr(), TLSConfig: server.TLSConfig(), Username: "shop", Password: "secret",
		DB: 3, ClientName: "checkout",
	}
	client := redis.NewClient(options)
	checkSameKey(t, client, options)
	require.Contains(t, client.ClientList(t.Context()).Val(), "name=checkout")

	// The options of a client have a dialer.
	checkSameKey(t, redis.NewClient(options), client.Options())

	options.Username, options.Password = "", ""
	options.CredentialsProvider = func() (string, string) { return "", "default's" }
	options.Protocol = 2
	checkSameKey(t, redis.NewClient(options), options)

	options.CredentialsProvider = func() (string, string) { return "", "another" }
	_, err := goredis.NewClient(options)
	require.ErrorContains(t, err, "WRONGPASS")
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis")
	redistest.Start(t, redistest.WithArgs("--unixsocket", socket))
	for _, options := range []*redis.Options{{Addr: socket}, {Network: "unix", Addr: socket}} {
		checkSameKey(t, redis.NewClient(options), options)
	}
}

func TestSentinelsWithPasswordAndTLS(t *testing.T) {
	t.Parallel()
	topology := redistest.StartSentinel(t, redistest.WithTLS(), redistest.WithPassword("secret"))
	option := topology.ClientOption()
	options := &redis.FailoverOptions{
		MasterName: option.Sentinel.MasterSet, SentinelAddrs: option.InitAddress,
		TLSConfig: option.TLSConfig, Password: "secret", DB: 3,
	}
	checkSameKey(t, redis.NewFailoverClient(options), options)

	routed := &redis.UniversalOptions{
		MasterName: options.MasterName, Addrs: options.SentinelAddrs, TLSConfig: options.TLSConfig,
		Password: "secret", DB: 3, RouteRandomly: true,
	}
	forLocks, err := goredis.NewClient(routed)
	require.NoError(t, err)
	defer forLocks.Close()
	require.Equal(t, rueidis.ClientModeSentinel, forLocks.Mode())
}

func TestClusterWithPassword(t *testing.T) {
	t.Parallel()
	topology := redistest.StartCluster(t, 3, redistest.WithPassword("secret"))
	options := &redis.ClusterOptions{Password: "secret"}
	for _, node := range topology.Nodes {
		options.Addrs = append(options.Addrs, node.Addr())
	}
	checkSameKey(t, redis.NewClusterClient(options), options)

	universal := &redis.UniversalOptions{
		Addrs: options.Addrs[:1], IsClusterMode: true,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			return "default", "secret", nil
		},
	}
	checkSameKey(t, redis.NewUniversalClient(universal), universal)
}

// The page says how many connections the second client has.
func TestConnectionsForLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	options := &redis.Options{Addr: server.Addr(), ClientName: "for-locks"}
	option, err := goredis.ClientOption(options)
	require.NoError(t, err)
	option.PipelineMultiplex = -1
	forLocks, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(forLocks.Close)
	client, err := rlock.New(forLocks, rlock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, client) })
	connections := func() int {
		return strings.Count(server.Do(t, "CLIENT", "LIST").(string), "name=for-locks")
	}
	lock := client.NewLock("orders")
	hold := locktest.Acquire(t, lock, rlock.Watchdog)
	require.Equal(t, 1, connections())
	waiter := locktest.LockInBackground(t.Context(), lock, rlock.Watchdog)
	locktest.Eventually(t, func() bool { return connections() == 2 }, "a waiter has subscribed")
	locktest.Unlock(t, hold)
	locktest.Unlock(t, locktest.Acquired(t, waiter))
}

// The page says what happens if locks of redislock or redsync have the names of ours.
func TestStringUnderTheSameNameExcludes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	options := &redis.Options{Addr: server.Addr()}
	other := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	forLocks, err := goredis.NewClient(options)
	require.NoError(t, err)
	t.Cleanup(forLocks.Close)
	client, err := rlock.New(forLocks, rlock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, client) })
	ctx, lock := t.Context(), client.NewLock("orders")

	require.NoError(t, other.Set(ctx, "orders", "token", 0).Err())
	_, err = lock.TryLock(ctx, rlock.Forever, rlock.Watchdog)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, "token", other.Get(ctx, "orders").Val())
	require.NoError(t, other.Del(ctx, "orders").Err())

	hold := locktest.Acquire(t, lock, rlock.Watchdog)
	require.False(t, other.MSetNX(ctx, "orders", "token").Val(), "as redislock")
	require.ErrorContains(t, other.GetRange(ctx, "orders", 0, 1).Err(), "WRONGTYPE")
	require.False(t, other.SetNX(ctx, "orders", "token", 0).Val(), "as redsync")
	locktest.Unlock(t, hold)
}
