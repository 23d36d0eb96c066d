// Package rlocktest tests programs that use holdfast, without Redis, containers or ports. The
// package gives a test a real [rlock.Client], connected to a Redis server inside the process of the
// test:
//
//	redis := rlocktest.New(t)
//	service := shop.New(redis.Client())
//	require.NoError(t, service.Ship(t.Context(), "order:42"))
//
// The test runs the real scripts, waits and watchdog of holdfast. [Redis.Busy], [Redis.Lose],
// [Redis.Down] and [Redis.Slow] cause the trouble that your program must handle. When the test
// ends, it fails if your program
//
//   - did not release a lock,
//   - still waits for a lock,
//   - took locks in opposite orders,
//   - let two goroutines with the same owner into a lock at the same time, or
//   - used the same name for kinds of locks that do not wake each other's waiters.
//
// # Time
//
// Leases run in real time. In a bubble of testing/synctest, leases run in the time of the bubble,
// so testing an hour of renewals takes milliseconds. Call [New] inside the bubble, and let time
// pass with time.Sleep. [Redis.Advance] moves only the clock of the server.
//
// # Limits
//
// The server is miniredis. All kinds of locks behave there as on a real Redis, and the promises of
// holdfast are tested on both. There are some differences:
//
//   - The server is a single node and never loses data. There is no cluster, replica, Sentinel,
//     restart, or sharded channel. A client with a positive Options.SyncReplicas acquires no lock,
//     so use rlock.SyncConnected.
//   - The server has no ACL, memory limit, or TLS, and only speaks RESP2.
//   - A script has no time limit. The server executes each command at once, and only replies can be
//     slow or lost.
//   - The server never disconnects a slow reader, and replies come at the speed of memory.
//   - The error texts of the server differ from those of Redis.
//   - The speed of the server says nothing about the speed of Redis.
//
// So a test proves that your program uses its locks correctly. To see what Redis itself does in a
// cluster, with replicas, or after a crash, test with a real Redis.
package rlocktest
