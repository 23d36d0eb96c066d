// Package inprocess is a Redis server inside the process, for tests that want real scripts and data
// without a Redis. It is miniredis with what that lacks: a clock that runs, or that a test moves,
// and faults. Clients reach it by pipes in memory, so it and its clients run inside a
// testing/synctest bubble; or by a port, with [Server.Serve].
//
// Package rlocktest makes it available to users, and lists what it cannot do. Package redistest can
// use it in place of a real server.
package inprocess
