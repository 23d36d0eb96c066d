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
	noPool    = "rueidis sends all commands over a few connections: there is no pool to size"
	noThreads = "goroutines need no pools of threads"
	noCodec   = "locks do not use the codec"
	noRetry   = "a command is retried for as long as its wait lasts"
	noReads   = "locks are read on the master, by both sides"
	noTuning  = "rueidis tunes connections by itself"
	noCleanUp = "is about objects other than locks"
	noStore   = "Go cannot read Java key stores: export it as PEM (keytool -list -rfc -keystore " +
		"FILE, or openssl pkcs12 -in FILE), set it in Redis.TLSConfig after Load, and name this " +
		"key in Options.Handled"
	noHook = "do the same with fields of Redis after Load, and name this key in Options.Handled"
	noSite = "find out which server is the master and use singleServerConfig with its address, or " +
		"let Sentinel tell it with sentinelServersConfig"
)

// sharedKeys may stand at the top level and, as they used to, beside the servers.
var sharedKeys = with(
	all(ignored(noTuning), "tcpKeepAlive", "keepAlive", "tcpKeepAliveCount", "tcpKeepAliveIdle",
		"tcpKeepAliveInterval", "tcpUserTimeout", "tcpNoDelay"),
	all(ignored("is of use with a key store only"), "sslKeystoreType", "sslTruststorePassword",
		"sslKeystorePassword"),
	all(refused(noStore), "sslTruststore", "sslKeystore"),
	all(refused(noHook), "sslTrustManagerFactory", "sslKeyManagerFactory"),
	map[string]rule{
		"username": text(func(r *reader, _ place, v string) { r.config.Redis.Username = v }),
		"password": text(func(r *reader, _ place, v string) { r.config.Redis.Password = v }),
		"credentialsResolver": bean("set Redis.AuthCredentialsFn after Load, and name this key in "+
			"Options.Handled", "org.redisson.client.DefaultCredentialsResolver"),
		"nameMapper": mapNames,
		"commandMapper": bean("renamed commands are not followed",
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
		"sslProvider": ignored("TLS is Go's own"),
		"sslProtocols": texts(func(r *reader, at place, v string) {
			version, ok := tlsVersions[v]
			if !ok {
				r.fail(at, "is not a version of TLS that is known here")
				return
			}
			r.versions = append(r.versions, version)
		}),
		"sslCiphers": refused("Java's names are not followed: set Redis.TLSConfig.CipherSuites " +
			"after Load, and name this key in Options.Handled"),
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
		"lazyInitialization": ignored("rueidis.NewClient connects, and fails if it cannot"),
		"valkeyCapabilities": ignored("rueidis follows the servers' answers"),
		"connectionListener": ignored("nobody is told about connections"),
		"nettyHook":          bean(noHook, "org.redisson.client.DefaultNettyHook"),
		"addressResolverGroupFactory": bean("set Redis.DialCtxFn after Load if names are resolved "+
			"in a special way, and name this key in Options.Handled",
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
	all(ignored("names are resolved for each new connection"), "dnsMonitoring",
		"dnsMonitoringInterval", "dnsMonitoringTimes"),
	map[string]rule{
		"clientName": text(func(r *reader, _ place, v string) { r.config.Redis.ClientName = v }),
		"connectTimeout": milliseconds(time.Millisecond,
			func(r *reader, v time.Duration) { r.config.Redis.Dialer.Timeout = v }),
		"timeout": milliseconds(time.Millisecond,
			func(r *reader, v time.Duration) { r.config.Locks.CommandTimeout = v }),
		"subscriptionTimeout": ignored("a waiter looks by itself until it is subscribed"),
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
				r.note(at, "locks are announced instead of handed over, because the Java side "+
					"listens at replicas. MASTER is quicker for both. On a cluster, beside Redisson "+
					"before 3.28, also set Locks.PubSub = rlock.PubSubClassic, or Go does not wake Java")
			default:
				r.fail(at, "must be MASTER or SLAVE")
			}
		}),
		"natMapper": bean("set Redis.DialCtxFn after Load to a function that dials the other "+
			"address, and name this key in Options.Handled",
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
	"checkSentinelsList":          ignored("one Sentinel that answers is enough"),
	"sentinelsDiscovery":          ignored("Sentinels are always discovered"),
	"checkSlaveStatusWithSyncing": ignored(noReads),
})

// clusterKeys are those of a cluster only.
var clusterKeys = with(replicaKeys, map[string]rule{
	"nodeAddresses": texts(addAddress),
	"database":      only("only the database 0 of a cluster is followed", "0"),
	"scanInterval": milliseconds(time.Millisecond, func(r *reader, v time.Duration) {
		r.config.Redis.ClusterOption.ShardsRefreshInterval = v
	}),
	"shardedSubscriptionMode": oneOf(map[string]rlock.PubSubMode{
		"AUTO": rlock.PubSubAuto, "ON": rlock.PubSubSharded, "OFF": rlock.PubSubClassic,
	}, func(r *reader, v rlock.PubSubMode) { r.config.Locks.PubSub = v }),
	"checkSlotsCoverage":    ignored("a slot without a server is an error when a lock needs it"),
	"checkMasterLinkStatus": ignored(noReads),
})

// addAddress follows an address of a server or Sentinel.
func addAddress(r *reader, at place, value string) {
	a, err := parseAddress(value)
	switch {
	case err != nil:
		r.fail(at, err.Error())
	case r.mode == single && len(r.addresses) > 0:
		r.fail(at, "a single server has one address: use clusterServersConfig or "+
			"sentinelServersConfig for several")
	case len(r.addresses) > 0 && a.tls != r.addresses[0].tls:
		r.fail(at, "either all addresses use TLS or none")
	case a.password != "" && r.mode != single:
		r.fail(at, "write the password beside the addresses, because it is the same for all")
	default:
		r.addresses = append(r.addresses, a)
	}
}

// defaultMapper is the rule of a NameMapper that may only be Redisson's default.
var defaultMapper = bean("set Locks.NameMapper after Load to a function that does the same, and "+
	"name this key in Options.Handled; or if it only puts a property prefix before each name, name "+
	"its class in Options.PrefixMappers",
	"org.redisson.config.DefaultNameMapper", "org.redisson.api.DefaultNameMapper")

// mapNames follows a NameMapper that the program knows.
func mapNames(r *reader, at place, value *yaml.Node) {
	if !slices.Contains(r.options.PrefixMappers, strings.TrimLeft(value.Tag, "!")) {
		defaultMapper(r, at, value)
		return
	}
	inner := value.Content // of {prefix: …}
	if len(inner) != 2 || inner[0].Value != "prefix" || inner[1].Kind != yaml.ScalarNode {
		r.fail(at, "has not just a prefix, although the program says so: write {prefix: …}")
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
