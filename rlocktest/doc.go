// Package rlocktest tests programs that use holdfast, without a Redis, a container or a port. It
// gives a test a real [rlock.Client] on a Redis server inside the test's own process:
//
//	redis := rlocktest.New(t)
//	service := shop.New(redis.Client())
//	require.NoError(t, service.Ship(t.Context(), "order:42"))
//
// What runs is the real code: its scripts, its waits, its watchdog. [Redis.Busy], [Redis.Lose],
// [Redis.Down] and [Redis.Slow] make happen what a program must cope with. When the test ends, it
// fails for locks that were not released, for calls that still wait, for locks that were taken in
// opposite orders, and for goroutines that share an owner and were inside one lock at once.
//
// # Time
//
// Leases run in real time. In a bubble of testing/synctest they run in the time of the bubble, so
// a test of an hour of renewals takes milliseconds: call New inside the bubble, and let time pass
// with time.Sleep. [Redis.Advance] moves the clock of the server alone.
//
// # What it cannot do
//
// The server is miniredis. It behaves as a real Redis for all kinds of locks of this module, as
// internal/suite proves on both. These are the differences:
//
//   - It is one server that loses nothing: there is no cluster, no replica, no Sentinel and no
//     restart. A client whose Options.SyncReplicas is a number acquires nothing; with
//     rlock.SyncConnected it does. Sharded channels are unknown.
//   - It knows no ACL, no memory limit and no TLS, and speaks RESP2 only.
//   - A script runs without a time limit, and never at the same time as a fault: commands are
//     executed at once, and only their replies are slow or lost.
//   - Clients are not disconnected for a slow reader, and latencies are those of memory.
//   - Error texts of the server are not those of Redis.
//   - Its speed says nothing about that of a Redis.
//
// So it proves that a program uses its locks properly. What Redis itself does, in a cluster, with
// replicas or after a crash, needs a real one.
package rlocktest
