// Package redissonyaml reads a Redisson configuration file, so that a Go service can share the file
// of a Java service while both run side by side.
//
//	config, err := redissonyaml.Load(file, redissonyaml.Options{})
//	if err != nil {
//		return err // names every line that cannot be followed, and says what to do
//	}
//	redis, err := rueidis.NewClient(config.Redis)
//	...
//	client, err := rlock.New(redis, config.Locks)
//
// Each key of the file has one of three fates. It is followed: it sets a field of
// rueidis.ClientOption or rlock.Options. It is harmless: it tunes something that does not exist
// here, such as a connection pool, and becomes one of Config.Notes. Or it is an error: ignoring it
// would connect to another server, trust another certificate or use other lock names than the Java
// side does. A key that this package does not know is an error, too.
//
// Followed are:
//
//   - singleServerConfig, sentinelServersConfig and clusterServersConfig with their addresses
//     (redis, rediss, valkey, valkeys), username, password, database, clientName, connectTimeout,
//     timeout, scanInterval, and what is special to Sentinel and Cluster;
//   - TLS: sslVerificationMode, the older sslEnableEndpointIdentification, and sslProtocols. Java
//     key stores are not: Options.Handled says how to replace them;
//   - lockWatchdogTimeout, fairLockWaitTimeout, checkLockSyncedSlaves, slavesSyncTimeout,
//     subscriptionMode, shardedSubscriptionMode and protocol;
//   - nameMapper, if the program says that it is a prefix: see Options.PrefixMappers;
//   - ${NAME} and ${NAME:-default}, replaced by environment variables before the file is parsed.
//
// Where the file is silent, rueidis's and this library's defaults apply. They are Redisson's for
// everything that both sides must agree on. checkLockSyncedSlaves is true by default, as in
// Redisson, and becomes rlock.SyncConnected with Sentinel and Cluster: one replica must acknowledge
// an acquisition, unless none is connected.
package redissonyaml
