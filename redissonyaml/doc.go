// Package redissonyaml reads the configuration file of Redisson, so that a Go service can share the
// file of a Java service while both run side by side.
//
//	config, err := redissonyaml.Load(file, redissonyaml.Options{})
//	if err != nil {
//		return err // names every rejected line, and says what to do
//	}
//	redis, err := rueidis.NewClient(config.Redis)
//	...
//	client, err := rlock.New(redis, config.Locks)
//
// [Load] treats each key of the file in one of three ways. Load applies a key by setting a field of
// rueidis.ClientOption or rlock.Options. Load ignores a harmless key, such as the size of a
// connection pool, and adds a line to [Config].Notes. Load rejects any other key, even an unknown
// key, because without the key the Go side could connect to another server, trust another
// certificate, or use other lock names than the Java side.
//
// Load applies these keys:
//
//   - singleServerConfig, sentinelServersConfig and clusterServersConfig, with addresses (redis,
//     rediss, valkey, valkeys), username, password, database, clientName, connectTimeout, timeout,
//     scanInterval, and the special keys of Sentinel and Cluster.
//   - For TLS, sslVerificationMode, the older sslEnableEndpointIdentification, and sslProtocols.
//     Load rejects Java key stores, and its error says how to convert them. See [Options].Handled.
//   - lockWatchdogTimeout, fairLockWaitTimeout, checkLockSyncedSlaves, slavesSyncTimeout,
//     subscriptionMode, shardedSubscriptionMode and protocol.
//   - nameMapper, if you state that the mapper is a prefix. See [Options].PrefixMappers.
//   - ${NAME} and ${NAME:-default}, which Load replaces by environment variables before parsing.
//
// If the Java service has its servers in spring.data.redis instead of a Redisson file, use
// [LoadSpringYAML] or [LoadSpringProperties].
//
// For missing keys, Load uses the defaults of rueidis and holdfast. Where both sides must agree,
// these are the defaults of Redisson. The key checkLockSyncedSlaves is true by default, as in
// Redisson, and becomes [rlock.SyncConnected] with Sentinel and Cluster. A single replica must then
// acknowledge each acquisition, unless no replica is connected.
package redissonyaml
