// Package goredis opens the client for holdfast's locks from the options of a go-redis client.
// holdfast connects through rueidis, so a service with go-redis needs a second client for its
// locks.
//
//	forLocks, err := goredis.NewClient(options) // the options of redis.NewClient
//	...
//	client, err := rlock.New(forLocks, rlock.Options{})
//
// Both clients use the same servers, database, user and certificates. docs/go-redis.md shows how to
// move a service from the locks of redislock or redsync.
//
// # Fields
//
// [ClientOption] treats each field of the go-redis options in one of three ways.
//
// ClientOption applies the addresses, Network, Dialer, TLSConfig, Username, Password,
// CredentialsProvider, CredentialsProviderContext, DB, ClientName, Protocol, DialTimeout,
// ConnMaxLifetime, DisableIdentity, MasterName, SentinelUsername, SentinelPassword and
// ClusterStateReloadInterval. As in go-redis, a Dialer replaces TLSConfig, and a Username without a
// Password has no effect.
//
// ClientOption rejects a field if ignoring the field could lead the locks to another server,
// database or user than the rest of the program. The rejected fields are OnConnect,
// StreamingCredentialsProvider, NewClient and ClusterSlots, and with Sentinel also
// CredentialsProvider and CredentialsProviderContext, because rueidis would send these credentials
// to the Sentinels. The error names each rejected field and says what to do.
//
// ClientOption ignores all other fields. rueidis has no counterpart of pools, buffers and
// pipelines, locks need no client-side cache and never read from replicas, and holdfast has its own
// timeouts and retries.
package goredis
