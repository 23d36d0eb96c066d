// Package redisson holds the tests of this library beside the real Redisson: locks of both exclude
// and wake each other, and both leave the same bytes in Redis. It has no code of its own.
//
// The Redisson side is a small Java program, the peer, in src/main/java. It reads orders on
// standard input and writes replies on standard output, one JSON object per line:
//
//	{"id":7,"thread":"t1","op":"tryLock","clients":["single"],"kind":"fair",
//	 "names":["order"],"wait":500,"lease":60000}
//	{"id":7,"start":1795195988063,"value":true,"ok":true,"end":1795195988100}
//
// Each thread that orders name is a Java thread, and so an owner of locks. One peer has any number
// of Redisson clients, each with its own servers: the order "open" makes one. Times are in
// milliseconds; a lease of 0 is the watchdog's.
//
// The tests have the build tag interop. build.sh builds the peer and prints its class path, which
// the tests read from the environment variable HOLDFAST_REDISSON_CLASSPATH. make interop does
// all of it.
//
// make interop VERSIONS=all runs the tests beside each release of Redisson in releases.txt. The
// peer is compiled with each of them. Its class Release calls by name what only some of them have.
// The tests learn the release from the class path. They leave out the kinds that it does not have,
// and known_test.go says what else is different.
package redisson
