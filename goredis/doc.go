// Package goredis opens the connections for holdfast's locks with the options of a go-redis client.
// holdfast connects through rueidis, so a service with go-redis has a second client for its locks.
//
//	redis, err := goredis.NewClient(options) // the options of redis.NewClient
//	...
//	client, err := rlock.New(redis, rlock.Options{})
//
// Both clients use the same servers, database, user and certificates. docs/go-redis.md shows how to
// move a service from the locks of redislock or redsync.
//
// # Fields
//
// [ClientOption] treats each field of the go-redis options in one of three ways.
//
// ClientOption follows addresses, Network, Dialer, TLSConfig, Username, Password,
// CredentialsProvider, CredentialsProviderContext, DB, ClientName, Protocol, DialTimeout,
// ConnMaxLifetime, DisableIdentity, MasterName, SentinelUsername, SentinelPassword and
// ClusterStateReloadInterval. As in go-redis, a Dialer takes the place of TLSConfig, and a Username
// without a Password has no effect.
//
// ClientOption rejects a field if the locks could otherwise be on another server, in another
// database, or under another user than the rest of the program. These fields are OnConnect,
// StreamingCredentialsProvider, NewClient and ClusterSlots, and with Sentinel also
// CredentialsProvider and CredentialsProviderContext, because rueidis would send these credentials
// to the Sentinels. The error names each rejected field and what to do.
//
// ClientOption ignores all other fields. Pools, buffers, pipelines and client-side caches have no
// counterpart, locks never read from replicas, and holdfast limits and repeats its commands itself.
package goredis
