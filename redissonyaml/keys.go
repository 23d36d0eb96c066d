package redissonyaml

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast/rlock"
)

// The sections of the servers.
const (
	single   = "singleServerConfig"
	sentinel = "sentinelServersConfig"
	cluster  = "clusterServersConfig"
)

// addressKeys are the keys of the addresses.
var addressKeys = map[string]string{
	single:   "address",
	sentinel: "sentinelAddresses",
	cluster:  "nodeAddresses",
}

// How often Redisson looks for changes of the servers, by default.
const (
	sentinelScan = time.Second
	clusterScan  = 5 * time.Second
)

// Why keys are ignored, or refused.
const (
	noPool    = "rueidis sends all commands over a few connections, so there is no pool"
	noThreads = "goroutines need no pools of threads"
	noCodec   = "locks do not use the codec"
	noRetry   = "a command is retried for as long as its wait lasts"
	noReads   = "both Redisson and holdfast read locks on the master"
	noTuning  = "rueidis tunes its connections itself"
	noCleanUp = "is about objects other than locks"
	noStore   = "Go cannot read Java key stores; export the certificates as PEM (keytool -list -rfc " +
		"-keystore FILE, or openssl pkcs12 -in FILE), set Redis.TLSConfig after Load, and add this " +
		"key to Options.Handled"
	noHook = "redissonyaml cannot run Java code; set Redis.TLSConfig after Load, and add this key " +
		"to Options.Handled"
	noSite = "redissonyaml does not support this section; use singleServerConfig with the address " +
		"of the master, or sentinelServersConfig"
)

// sharedKeys may stand at the top level and, as they used to, beside the servers.
var sharedKeys = with(
	all(ignored(noTuning), "tcpKeepAlive", "keepAlive", "tcpKeepAliveCount", "tcpKeepAliveIdle",
		"tcpKeepAliveInterval", "tcpUserTimeout", "tcpNoDelay"),
	all(ignored("is only for a key store"), "sslKeystoreType", "sslTruststorePassword",
		"sslKeystorePassword"),
	all(refused(noStore), "sslTruststore", "sslKeystore"),
	all(refused(noHook), "sslTrustManagerFactory", "sslKeyManagerFactory"),
	map[string]rule{
		"username": text(func(r *reader, _ place, v string) { r.config.Redis.Username = v }),
		"password": text(func(r *reader, _ place, v string) { r.config.Redis.Password = v }),
		"credentialsResolver": bean("set Redis.AuthCredentialsFn after Load, and add this key to "+
			"Options.Handled", "org.redisson.client.DefaultCredentialsResolver"),
		"nameMapper": mapNames,
		"commandMapper": bean("holdfast does not support renamed commands",
			"org.redisson.config.DefaultCommandMapper"),
		"sslVerificationMode": oneOf(
			map[string]verification{"STRICT": strict, "CA_ONLY": caOnly, "NONE": none},
			func(r *reader, v verification) { r.verification = v }),
		"sslEnableEndpointIdentification": flag(func(r *reader, _ place, v bool) {
			r.verification = strict
			if !v {
				r.verification = none // as Redisson has it
			}
		}),
		"sslProvider": ignored("Go has its own TLS"),
		"sslProtocols": texts(func(r *reader, at place, v string) {
			version, ok := tlsVersions[v]
			if !ok {
				r.fail(at, "is an unknown version of TLS; use TLSv1.2 or TLSv1.3")
				return
			}
			r.versions = append(r.versions, version)
		}),
		"sslCiphers": refused("redissonyaml does not know Java's names of ciphers; set " +
			"Redis.TLSConfig.CipherSuites after Load, and add this key to Options.Handled"),
	})

// topKeys are those of Redisson's Config.
var topKeys = with(sharedKeys,
	all(refused(noSite), "masterSlaveServersConfig", "replicatedServersConfig"),
	all(ignored(noThreads), "threads", "nettyThreads", "executor", "nettyExecutor",
		"eventLoopGroup", "transportMode", "useLinuxNativeEpoll", "useThreadClassLoader"),
	all(ignored(noCodec), "codec", "codecProvider", "decodeInExecutor"),
	all(ignored(noCleanUp), "referenceEnabled", "redissonReferenceEnabled", "resolverProvider",
		"reliableTopicWatchdogTimeout", "minCleanUpDelay", "maxCleanUpDelay", "cleanUpKeysAmount"),
	map[string]rule{
		"lockWatchdogTimeout": milliseconds(10*time.Millisecond, // as rlock.New
			func(r *reader, v time.Duration) { r.config.Locks.WatchdogLease = v }),
		"lockWatchdogBatchSize": ignored("batches of renewals do not wait for each other"),
		"fairLockWaitTimeout": milliseconds(10*time.Second,
			func(r *reader, v time.Duration) { r.config.Locks.FairWindow = v }),
		"checkLockSyncedSlaves": flag(func(r *reader, at place, v bool) {
			r.syncedSlaves, r.unsynced = at, !v
		}),
		"slavesSyncTimeout": milliseconds(time.Millisecond,
			func(r *reader, v time.Duration) { r.config.Locks.SyncTimeout = v }),
		"protocol": oneOf(map[string]bool{"RESP2": true, "RESP3": false},
			func(r *reader, old bool) {
				// Client-side caching, which locks do not use, needs RESP3.
				r.config.Redis.AlwaysRESP2, r.config.Redis.DisableCache = old, old
			}),
		"keepPubSubOrder":    ignored("messages about locks need no order"),
		"useScriptCache":     ignored("scripts are always sent by their hash"),
		"lazyInitialization": ignored("rueidis.NewClient connects at once, and fails if it cannot"),
		"valkeyCapabilities": ignored("rueidis follows the replies of the servers"),
		"connectionListener": ignored("holdfast has no listener for connections"),
		"nettyHook":          bean(noHook, "org.redisson.client.DefaultNettyHook"),
		"addressResolverGroupFactory": bean("if names need a special resolver, set Redis.DialCtxFn "+
			"after Load, and add this key to Options.Handled",
			"org.redisson.connection.DnsAddressResolverGroupFactory",
			"org.redisson.connection.RoundRobinDnsAddressResolverGroupFactory",
			"org.redisson.connection.SequentialDnsAddressResolverFactory"),
	})

// serverKeys are those of the servers in each mode.
var serverKeys = with(sharedKeys,
	all(ignored(noRetry), "retryAttempts", "retryInterval", "retryDelay", "reconnectionDelay",
		"reconnectionTimeout", "failedAttempts"),
	all(ignored(noPool), "idleConnectionTimeout", "subscriptionsPerConnection",
		"subscriptionConnectionMinimumIdleSize", "subscriptionConnectionPoolSize"),
	all(ignored(noTuning), "pingConnectionInterval", "pingTimeout"),
	all(ignored("holdfast resolves the names for each new connection"), "dnsMonitoring",
		"dnsMonitoringInterval", "dnsMonitoringTimes"),
	map[string]rule{
		"clientName": text(func(r *reader, _ place, v string) { r.config.Redis.ClientName = v }),
		"connectTimeout": milliseconds(time.Millisecond,
			func(r *reader, v time.Duration) { r.config.Redis.Dialer.Timeout = v }),
		"timeout": milliseconds(time.Millisecond,
			func(r *reader, v time.Duration) { r.config.Locks.CommandTimeout = v }),
		"subscriptionTimeout": ignored("a waiter checks the lock itself until it is subscribed"),
	})

// singleKeys are those of a single server only.
var singleKeys = with(
	all(ignored(noPool), "connectionMinimumIdleSize", "connectionPoolSize"),
	map[string]rule{
		"address":  texts(addAddress),
		"database": number(0, func(r *reader, v int) { r.config.Redis.SelectDB = v }),
	})

// replicaKeys are those of servers that have replicas.
var replicaKeys = with(
	all(ignored(noReads), "readMode", "loadBalancer", "fallbackLoadingToMaster",
		"failedSlaveReconnectionInterval", "failedSlaveCheckInterval", "failedSlaveNodeDetector"),
	all(ignored(noPool), "slaveConnectionMinimumIdleSize", "slaveConnectionPoolSize",
		"slaveSubscriptionConnectionMinimumIdleSize", "slaveSubscriptionConnectionPoolSize",
		"masterConnectionMinimumIdleSize", "masterConnectionPoolSize"),
	map[string]rule{
		"subscriptionMode": text(func(r *reader, at place, v string) {
			switch v {
			case "MASTER":
			case "SLAVE":
				// A hand-over looks at the master for waiters in Java, and would pass these over.
				r.config.Locks.HandOver = rlock.HandOverNone
				r.note(at, "hand-overs are off, because the Java side listens at replicas. "+
					"MASTER is faster for both sides. On a cluster with Redisson before 3.28, also set "+
					"Locks.PubSub = rlock.PubSubClassic; otherwise Go does not wake Java")
			default:
				r.fail(at, "must be MASTER or SLAVE")
			}
		}),
		"natMapper": bean("set Redis.DialCtxFn after Load to a function that dials the other "+
			"address, and add this key to Options.Handled",
			"org.redisson.config.DefaultNatMapper", "org.redisson.api.DefaultNatMapper"),
	})

// sentinelKeys are those of Sentinel only.
var sentinelKeys = with(replicaKeys, map[string]rule{
	"sentinelAddresses": texts(addAddress),
	"masterName": text(func(r *reader, _ place, v string) {
		r.config.Redis.Sentinel.MasterSet = v
	}),
	"sentinelUsername": text(func(r *reader, _ place, v string) {
		r.config.Redis.Sentinel.Username = v
	}),
	"sentinelPassword": text(func(r *reader, _ place, v string) {
		r.config.Redis.Sentinel.Password = v
	}),
	"database": number(0, func(r *reader, v int) { r.config.Redis.SelectDB = v }),
	"scanInterval": milliseconds(time.Millisecond, func(r *reader, v time.Duration) {
		r.config.Redis.Sentinel.TopologyRefreshInterval = v
	}),
	"checkSentinelsList":          ignored("one Sentinel that replies is enough"),
	"sentinelsDiscovery":          ignored("rueidis always discovers the Sentinels"),
	"checkSlaveStatusWithSyncing": ignored(noReads),
})

// clusterKeys are those of a cluster only.
var clusterKeys = with(replicaKeys, map[string]rule{
	"nodeAddresses": texts(addAddress),
	"database":      only("a cluster has only the database 0; remove this key", "0"),
	"scanInterval": milliseconds(time.Millisecond, func(r *reader, v time.Duration) {
		r.config.Redis.ClusterOption.ShardsRefreshInterval = v
	}),
	"shardedSubscriptionMode": oneOf(map[string]rlock.PubSubMode{
		"AUTO": rlock.PubSubAuto, "ON": rlock.PubSubSharded, "OFF": rlock.PubSubClassic,
	}, func(r *reader, v rlock.PubSubMode) { r.config.Locks.PubSub = v }),
	"checkSlotsCoverage":    ignored("a slot without a server is an error once a lock needs it"),
	"checkMasterLinkStatus": ignored(noReads),
})

// addAddress follows an address of a server or Sentinel.
func addAddress(r *reader, at place, value string) {
	a, err := parseAddress(value)
	switch {
	case err != nil:
		r.fail(at, err.Error())
	case r.mode == single && len(r.addresses) > 0:
		r.fail(at, "a single server has only one address; use clusterServersConfig or "+
			"sentinelServersConfig for several")
	case len(r.addresses) > 0 && a.tls != r.addresses[0].tls:
		r.fail(at, "uses TLS unlike the other addresses, or the reverse; use one scheme for all")
	case a.password != "" && r.mode != single:
		r.fail(at, "must not contain a password; set password, because it is the same for all addresses")
	default:
		r.addresses = append(r.addresses, a)
	}
}

// defaultMapper is the rule of a NameMapper that may only be Redisson's default.
var defaultMapper = bean("set Locks.NameMapper after Load to a function that does the same, and "+
	"add this key to Options.Handled. If the class only puts its property prefix before each name, "+
	"add the class to Options.PrefixMappers instead",
	"org.redisson.config.DefaultNameMapper", "org.redisson.api.DefaultNameMapper")

// mapNames follows a NameMapper that the program knows.
func mapNames(r *reader, at place, value *yaml.Node) {
	if !slices.Contains(r.options.PrefixMappers, strings.TrimLeft(value.Tag, "!")) {
		defaultMapper(r, at, value)
		return
	}
	inner := value.Content // of {prefix: …}
	if len(inner) != 2 || inner[0].Value != "prefix" || inner[1].Kind != yaml.ScalarNode {
		r.fail(at, "must have only the property prefix, as in {prefix: …}, because "+
			"Options.PrefixMappers has this class")
		return
	}
	if !r.unset(at, inner[1]) {
		r.config.Locks.NameMapper = rlock.Prefix(inner[1].Value)
	}
}

// all returns the same rule for several keys.
func all(same rule, keys ...string) map[string]rule {
	rules := make(map[string]rule, len(keys))
	for _, key := range keys {
		rules[key] = same
	}
	return rules
}

// with returns the keys of all tables.
func with(tables ...map[string]rule) map[string]rule {
	keys := make(map[string]rule)
	for _, table := range tables {
		maps.Copy(keys, table)
	}
	return keys
}
