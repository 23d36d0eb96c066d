//go:build interop

package redisson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redissonyaml"
	"holdfast/rlock"
)

// newYAMLSite returns a site with clients of both sides that were made from the same file.
func newYAMLSite(t *testing.T, java *peer, s *site, file string) (*site, *rlock.Client) {
	t.Helper()
	config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{
		PrefixMappers: []string{"holdfast.peer.PrefixMapper"},
	})
	require.NoError(t, err)
	if !beside.choosesSync() {
		config.Locks.SyncReplicas = 0 // there are no replicas, and the file cannot say so
	}
	redis, err := rueidis.NewClient(config.Redis)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client, err := rlock.New(redis, config.Locks)
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, client) })

	name := newName()
	java.openWith(t, name, order{"op": "openYaml", "yaml": file})
	s.java, s.clients = java, []string{name}
	return s, client
}

func TestOneYAMLFileLeadsBothSidesToTheSameLocks(t *testing.T) {
	t.Parallel()
	java := startPeer(t)
	for topology, start := range map[string]func(t *testing.T) (*site, string){
		"single": func(t *testing.T) (*site, string) {
			server := redistest.Start(t)
			mapper := `nameMapper: !<holdfast.peer.PrefixMapper> {prefix: "shop:"}` + "\n"
			within, beyond := "", mapper
			if beside.before(release{4, 0, 0}) {
				within, beyond = "  "+mapper, ""
			}
			if !beside.mapsNames() {
				within = ""
			}
			return &site{nodes: []*redistest.Server{server}}, fmt.Sprintf(`
singleServerConfig:
  address: "redis://${HOLDFAST_YAML_ADDRESS:-%s}"
  database: 2
  clientName: shared
  connectionMinimumIdleSize: 2
  connectionPoolSize: 8
%slockWatchdogTimeout: 4000
threads: 4
nettyThreads: 2
%s`, server.Addr(), within, beyond)
		},
		"cluster": func(t *testing.T) (*site, string) {
			cluster := redistest.StartCluster(t, 3)
			var nodes strings.Builder
			for _, node := range cluster.Nodes {
				fmt.Fprintf(&nodes, "  - \"redis://%s\"\n", node.Addr())
			}
			sharded, synced := "  shardedSubscriptionMode: AUTO\n", "checkLockSyncedSlaves: false\n"
			if !beside.choosesChannels() {
				sharded = ""
			}
			if !beside.choosesSync() {
				synced = ""
			}
			return &site{nodes: cluster.Nodes, cluster: cluster}, `
clusterServersConfig:
  nodeAddresses:
` + nodes.String() + sharded + `
  readMode: MASTER_SLAVE
  masterConnectionMinimumIdleSize: 2
lockWatchdogTimeout: 4000
threads: 4
nettyThreads: 2
` + synced
		},
	} {
		t.Run(topology, func(t *testing.T) {
			s, file := start(t)
			s, client := newYAMLSite(t, java, s, file)
			l := both(reentrant).hold
			lock := client.NewLock(l.name())

			// Java waits for Go, and is woken.
			hold := locktest.Acquire(t, lock, longLease)
			thread := newJavaActor(t, s)
			require.ErrorIs(t, thread.tryLock(l, 0, longLease), errRefused)
			waiting := inBackground(func() error { return thread.tryLock(l, longLease, rlock.Watchdog) })
			locktest.Unlock(t, hold)
			acquired(t, waiting)

			// Go waits for Java, sees that its lease is the file's, and is woken.
			ttl, err := lock.TTL(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, ttl, 4*time.Second)
			_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			done := locktest.LockInBackground(t.Context(), lock, longLease)
			require.NoError(t, thread.unlock(l))
			locktest.Unlock(t, locktest.Acquired(t, done))
		})
	}
}

// Config.toYAML writes all keys that this Redisson has, with their values: each must be known.
func TestEveryKeyThatRedissonWritesIsKnown(t *testing.T) {
	t.Parallel()
	java := startPeer(t)
	for topology, want := range map[string]int{"single": 1, "sentinel": 2, "cluster": 2} {
		r, err := java.do(order{
			"thread": "yaml", "op": "yaml", "topology": topology, "watchdog": 5000,
			"addresses": []string{"127.0.0.1:6379", "127.0.0.1:6380"}[:want],
		})
		require.NoError(t, err)
		require.True(t, r.OK, "%s: %s", r.Class, r.Message)
		var file string
		require.NoError(t, json.Unmarshal(r.Value, &file))
		config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
		require.NoError(t, err, file)
		require.Len(t, config.Redis.InitAddress, want)
		require.Equal(t, 5*time.Second, config.Locks.WatchdogLease)
	}
}
