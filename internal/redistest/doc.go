// Package redistest starts real Redis servers for tests, and stops, pauses and
// restarts them to play the faults a lock has to survive.
//
// It never touches a server it did not start: each server listens on a free
// port of 127.0.0.1, works in a temporary directory of its own, is recognised
// by its process id before a test may use it, and is killed by that process id
// in the test's clean-up. A test that cannot have a server fails, with one line
// that says what is missing; it is never skipped.
//
// # Backends
//
// A server is a process where a redis-server is on PATH, else a container where
// a Docker engine answers. These environment variables decide otherwise:
//
//	HOLDFAST_TEST_BACKEND  "process" or "docker" allows only that one
//	HOLDFAST_TEST_SERVER   the program to run as a process; defaults to redis-server
//	HOLDFAST_TEST_IMAGE    the image to run as a container; defaults to redis:7
//
// On Linux a server process also dies with the test binary, however that ends.
// Elsewhere a test binary killed by SIGKILL leaves its servers behind.
//
// # Leak checks
//
// A running server process costs one goroutine, which ends when the server
// does. [VerifyMain], run after all tests, sees none of them. A check inside a test needs
// goleak.IgnoreCurrent, taken after Start.
package redistest
