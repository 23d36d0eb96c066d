package integration_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redissonyaml"
	"holdfast/rlock"
)

// lockWithFile acquires and releases a lock on what a Redisson file says. Java's trust store, of
// which the file knows, is replaced by trust, if there is one.
func lockWithFile(t *testing.T, file string, trust *tls.Config) {
	t.Helper()
	config, err := redissonyaml.Load(strings.NewReader(file),
		redissonyaml.Options{Handled: []string{"sslTruststore"}})
	require.NoError(t, err)
	if trust != nil {
		require.NotNil(t, config.Redis.TLSConfig)
		config.Redis.TLSConfig.RootCAs = trust.RootCAs
		config.Redis.TLSConfig.Certificates = trust.Certificates
	}
	redis, err := rueidis.NewClient(config.Redis)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client, err := rlock.New(redis, config.Locks)
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, client) })
	locktest.Unlock(t, locktest.Acquire(t, client.NewLock("yaml"), rlock.Watchdog))
}

func TestRedissonFileOfSentinelLeadsToTheLocksOfItsMaster(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	option := sentinel.ClientOption()
	// By default one replica has to acknowledge each acquisition, within a second. Here it may stand
	// still for longer.
	lockWithFile(t, fmt.Sprintf(`
slavesSyncTimeout: 10000
sentinelServersConfig:
  masterName: %s
  sentinelAddresses: ["redis://%s"]
`, option.Sentinel.MasterSet, strings.Join(option.InitAddress, `", "redis://`)), nil)
}
