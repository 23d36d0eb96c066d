package redissonyaml_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
	"holdfast/rlock"
)

// load reads a file that can be followed.
func load(t *testing.T, file string, handled ...string) *redissonyaml.Config {
	t.Helper()
	config, err := redissonyaml.Load(strings.NewReader(file),
		redissonyaml.Options{Handled: handled})
	require.NoError(t, err)
	return config
}

// noted returns the note about a line.
func noted(t *testing.T, config *redissonyaml.Config, number int) redissonyaml.Line {
	t.Helper()
	for _, note := range config.Notes {
		if note.Number == number {
			return note
		}
	}
	require.Failf(t, "no note", "about line %d in %v", number, config.Notes)
	return redissonyaml.Line{}
}

func TestSingleServerIsFollowed(t *testing.T) {
	config := load(t, `
singleServerConfig:
  address: "redis://10.0.0.7:6380"
  username: shop
  password: old
  sslTruststore: ~
  nameMapper:
  database: 3
  clientName: shop-java
  connectTimeout: 2000
  timeout: 1500
  connectionPoolSize: 64
lockWatchdogTimeout: 10000
lockWatchdogBatchSize: 50
fairLockWaitTimeout: 60000
slavesSyncTimeout: 500
threads: 16
codec: !<org.redisson.codec.Kryo5Codec> {}
password: "s3cret: #1" # as in Redisson 4, it outranks that of the section
clusterServersConfig: null
`)
	redis := rueidis.ClientOption{
		InitAddress:       []string{"10.0.0.7:6380"},
		Username:          "shop",
		Password:          "s3cret: #1",
		SelectDB:          3,
		ClientName:        "shop-java",
		ForceSingleClient: true,
	}
	redis.Dialer.Timeout = 2 * time.Second
	require.Equal(t, redis, config.Redis)
	require.Equal(t, rlock.Options{
		CommandTimeout: 1500 * time.Millisecond,
		WatchdogLease:  10 * time.Second,
		FairWindow:     time.Minute,
		SyncTimeout:    500 * time.Millisecond,
	}, config.Locks)
	require.Equal(t, "singleServerConfig.connectionPoolSize", noted(t, config, 12).Key)
	require.Equal(t, "lockWatchdogBatchSize", noted(t, config, 14).Key)
	require.Equal(t, "threads", noted(t, config, 17).Key)
	require.Equal(t, "line 18: codec: locks do not use the codec", noted(t, config, 18).String())
}

func TestSentinelIsFollowed(t *testing.T) {
	config := load(t, `
sentinelServersConfig:
  masterName: mymaster
  sentinelAddresses: ["rediss://s1:26379", "rediss://s2:26379"]
  sentinelUsername: watch
  sentinelPassword: &shared secret
  password: *shared
  readMode: SLAVE
  connectTimeout: 2000
`)
	require.Equal(t, []string{"s1:26379", "s2:26379"}, config.Redis.InitAddress)
	require.Equal(t, "mymaster", config.Redis.Sentinel.MasterSet)
	require.Equal(t, "watch", config.Redis.Sentinel.Username)
	require.Equal(t, "secret", config.Redis.Sentinel.Password)
	require.Equal(t, "secret", config.Redis.Password)
	require.Equal(t, 2*time.Second, config.Redis.Sentinel.Dialer.Timeout)
	require.Equal(t, time.Second, config.Redis.Sentinel.TopologyRefreshInterval)
	require.False(t, config.Redis.ForceSingleClient)
	require.NotNil(t, config.Redis.TLSConfig)
	require.Same(t, config.Redis.TLSConfig, config.Redis.Sentinel.TLSConfig)
	require.Equal(t, "sentinelServersConfig.readMode", noted(t, config, 8).Key)
}

func TestClusterIsFollowed(t *testing.T) {
	config := load(t, `
clusterServersConfig:
  nodeAddresses:
  - "rediss://n1:7001"
  - "rediss://[::1]:7002"
  scanInterval: 2000
  shardedSubscriptionMode: OFF
checkLockSyncedSlaves: false
protocol: RESP2
`)
	require.Equal(t, []string{"n1:7001", "[::1]:7002"}, config.Redis.InitAddress)
	require.NotNil(t, config.Redis.TLSConfig)
	require.Equal(t, 2*time.Second, config.Redis.ClusterOption.ShardsRefreshInterval)
	require.Equal(t, rlock.PubSubClassic, config.Locks.PubSub)
	require.Zero(t, config.Locks.SyncReplicas)
	require.Equal(t, "checkLockSyncedSlaves", noted(t, config, 8).Key)
	require.True(t, config.Redis.AlwaysRESP2)
	require.True(t, config.Redis.DisableCache, "client-side caching needs RESP3")
}

func TestCheckLockSyncedSlavesIsTrueByDefaultWhereAFailoverCanHappen(t *testing.T) {
	for file, replicas := range map[string]int{
		"singleServerConfig: {address: 'redis://a:1'}":                               0,
		"sentinelServersConfig: {masterName: m, sentinelAddresses: ['redis://a:1']}": rlock.SyncConnected,
		"clusterServersConfig: {nodeAddresses: ['redis://a:1']}":                     rlock.SyncConnected,
	} {
		require.Equal(t, replicas, load(t, file).Locks.SyncReplicas, file)
		require.Equal(t, replicas,
			load(t, file+"\ncheckLockSyncedSlaves: true").Locks.SyncReplicas, file)
		require.Zero(t, load(t, file+"\ncheckLockSyncedSlaves: false").Locks.SyncReplicas, file)
	}
}

func TestJavaThatListensAtReplicasIsNotPassedOverByHandOvers(t *testing.T) {
	file := "clusterServersConfig: {nodeAddresses: ['redis://a:1'], subscriptionMode: "
	require.Equal(t, rlock.HandOverAnywhere, load(t, file+"MASTER}").Locks.HandOver)
	require.Equal(t, rlock.HandOverNone, load(t, file+"SLAVE}").Locks.HandOver)
	_, err := redissonyaml.Load(strings.NewReader(file+"OTHER}"), redissonyaml.Options{})
	require.ErrorContains(t, err, "must be MASTER or SLAVE")
}

func TestHandledKeysAreLeftToTheCaller(t *testing.T) {
	config := load(t, `
singleServerConfig:
  address: "rediss://a:1"
  sslTruststore: file:/etc/trust.jks
  frobnicate: 7
`, "sslTruststore", "frobnicate")
	require.Equal(t, "singleServerConfig.sslTruststore", noted(t, config, 4).Key)
	require.Equal(t, "singleServerConfig.frobnicate", noted(t, config, 5).Key)
}

func TestPrefixIsFollowedIfTheProgramSaysThatItIsOne(t *testing.T) {
	options := redissonyaml.Options{PrefixMappers: []string{"com.acme.Prefixer"}}
	file := `
singleServerConfig: {address: "redis://a:1"}
nameMapper: !<com.acme.Prefixer> `
	config, err := redissonyaml.Load(strings.NewReader(file+`{prefix: "shop:"}`), options)
	require.NoError(t, err)
	require.Equal(t, "shop:order", config.Locks.NameMapper("order"))

	for value, says := range map[string]string{
		`{prefix: "shop:", suffix: x}`:   "must have only the property prefix",
		`{}`:                             "must have only the property prefix",
		`{prefix: ["shop:"]}`:            "must have only the property prefix",
		`{prefix: "${HOLDFAST_UNSET}:"}`: "is not set in the environment",
	} {
		_, err = redissonyaml.Load(strings.NewReader(file+value), options)
		require.ErrorContains(t, err, "line 3: nameMapper: ")
		require.ErrorContains(t, err, says)
	}
	_, err = redissonyaml.Load(strings.NewReader(file+"{prefix: x}"), redissonyaml.Options{})
	require.ErrorContains(t, err, "Options.PrefixMappers")
}

func TestLinesThatCannotBeFollowedAreErrors(t *testing.T) {
	// Each file is wrong in the line with the comment, which begins with what the error says.
	for name, file := range map[string]string{
		"unknown key": `
singleServerConfig:
  host: "redis://a:1" # singleServerConfig.host: unknown key
  address: "redis://a:1"`,
		"trust store": `
singleServerConfig:
  address: "rediss://a:1"
  sslTruststore: file:/etc/trust.jks # singleServerConfig.sslTruststore: Go cannot read Java key`,
		"name mapper": `
singleServerConfig:
  address: "redis://a:1"
  nameMapper: !<com.acme.Mapper> {} # singleServerConfig.nameMapper: com.acme.Mapper is Java code`,
		"name mapper that is none": `
nameMapper: app # nameMapper: must be an object of a Java class
singleServerConfig: {address: "redis://a:1"}`,
		"credentials": `
credentialsResolver: !<com.acme.Vault> {} # credentialsResolver: com.acme.Vault is Java code
singleServerConfig: {address: "redis://a:1"}`,
		"other servers": `
replicatedServersConfig: # replicatedServersConfig: redissonyaml does not support this section
  nodeAddresses: ["redis://a:1"]
singleServerConfig: {address: "redis://a:1"}`,
		"two modes": `
singleServerConfig: {address: "redis://a:1"}
clusterServersConfig: {nodeAddresses: ["redis://a:1"]} # clusterServersConfig: the file also`,
		"a key twice": `
singleServerConfig:
  address: "redis://a:1"
  address: "redis://b:1" # singleServerConfig.address: line 3 has the same key`,
		"no scheme": `
singleServerConfig:
  address: "a:6379" # singleServerConfig.address: has no scheme`,
		"a socket": `
singleServerConfig:
  address: "redis+uds:///run/redis" # singleServerConfig.address: redissonyaml does not support`,
		"no port": `
singleServerConfig:
  address: "redis://a" # singleServerConfig.address: must end in host:port`,
		"a port that is none": `
singleServerConfig:
  address: "redis://a:70000" # singleServerConfig.address: must have a port between`,
		"mixed schemes": `
clusterServersConfig:
  nodeAddresses:
  - redis://a:1
  - rediss://b:1 # clusterServersConfig.nodeAddresses: uses TLS unlike`,
		"a password in the address of one node": `
clusterServersConfig:
  nodeAddresses: ["redis://u:p@a:1"] # clusterServersConfig.nodeAddresses: must not contain`,
		"a fair window that is too short": `
singleServerConfig: {address: "redis://a:1"}
fairLockWaitTimeout: 5000 # fairLockWaitTimeout: must be a number of milliseconds, at least 10000`,
		"a watchdog that rlock.New rejects": `
singleServerConfig: {address: "redis://a:1"}
lockWatchdogTimeout: 5 # lockWatchdogTimeout: must be a number of milliseconds`,
		"a time that is too long": `
singleServerConfig: {address: "redis://a:1"}
lockWatchdogTimeout: 9223372036854775807 # lockWatchdogTimeout: must be a number of milliseconds`,
		"a flag that is none": `
singleServerConfig: {address: "redis://a:1"}
checkLockSyncedSlaves: 1 # checkLockSyncedSlaves: must be true or false`,
		"a database of a cluster": `
clusterServersConfig: 
  database: 1 # clusterServersConfig.database: a cluster has only the database 0
  nodeAddresses: ["redis://a:1"]`,
		"an unknown name": `
singleServerConfig: {address: "redis://a:1"}
sslVerificationMode: LAX # sslVerificationMode: must be one of CA_ONLY, NONE, STRICT`,
		"a section that is none": `
singleServerConfig: redis://a:1 # singleServerConfig: must be a mapping
clusterServersConfig: {nodeAddresses: ["redis://a:1"]}`,
		"a merged mapping": `
singleServerConfig: &shared
  address: "redis://a:1"
  <<: *shared # singleServerConfig.<<: redissonyaml does not support merged`,
		"a key that is no name": `
singleServerConfig: {address: "redis://a:1"}
[a, b]: c # a key must be a name`,
		"a variable without a value": `
singleServerConfig:
  address: "redis://${HOLDFAST_UNSET}:1" # singleServerConfig.address: ${HOLDFAST_UNSET} is not`,
		"a file of Spring": `
spring: {redis: {}} # spring: this is a Spring file
singleServerConfig: {address: "redis://a:1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
			var wrong *redissonyaml.Error
			require.ErrorAs(t, err, &wrong)
			line := wrong.Lines[0]
			for i, text := range strings.Split(file, "\n") {
				if _, says, found := strings.Cut(text, " # "); found {
					require.Equal(t, i+1, line.Number, "%v", wrong)
					_, said, _ := strings.Cut(line.String(), ": ")
					require.True(t, strings.HasPrefix(said, says), said)
				}
			}
		})
	}
}

func TestWhatIsMissingIsAnError(t *testing.T) {
	for file, says := range map[string]string{
		"":                         "the file is empty",
		"threads: 1":               "no servers",
		"singleServerConfig: {}":   "singleServerConfig: has no address; add address",
		"singleServerConfig: ~":    "no servers",
		"a: 1\n b: 2":              "line 2",
		"threads: 1\n---\nb: 1":    "more than one document",
		"clusterServersConfig: {}": "add nodeAddresses",
		"sentinelServersConfig: {sentinelAddresses: ['redis://a:1']}":  "has no masterName",
		"password: x\nsingleServerConfig: {address: 'redis://:y@a:1'}": "has two passwords",
	} {
		_, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
		require.ErrorContains(t, err, says, "%q", file)
	}
}

func TestAllWrongLinesAreReportedInTheirOrder(t *testing.T) {
	_, err := redissonyaml.Load(strings.NewReader(`
nameMapper: !<com.acme.Mapper> {}
singleServerConfig:
  address: "a:1"
  sslKeystore: file:/keys
`), redissonyaml.Options{})
	var wrong *redissonyaml.Error
	require.ErrorAs(t, err, &wrong)
	var numbers []int
	for _, line := range wrong.Lines {
		numbers = append(numbers, line.Number)
	}
	require.Equal(t, []int{2, 4, 5}, numbers[:3])
	require.ErrorContains(t, err, "\n\tline 4: singleServerConfig.address: ")
}
