// Package redistest starts real Redis servers for tests, and stops, pauses and
// restarts them to play the faults a lock has to survive.
//
// It never touches a server it did not start: each server listens on a free
// port of 127.0.0.1, works in a temporary directory of its own (in /dev/shm where
// that has room, as a busy disk holds up servers), is recognised by its process id
// before a test may use it, and is killed by that process id in the test's
// clean-up. A test that cannot have a server fails, with one line that says what
// is missing; it is never skipped.
//
// # Backends
//
// A server is a container where a Docker engine answers, else a process where a
// redis-server or a valkey-server is on PATH. These environment variables decide
// otherwise:
//
//	HOLDFAST_TEST_BACKEND  "process" or "docker" allows only that one
//	HOLDFAST_TEST_SERVER   the program to run as a process, which then is the backend unless the other is named;
//	                       defaults to redis-server, or valkey-server where there is no such
//	HOLDFAST_TEST_IMAGE    the image to run as a container; defaults to redis:7
//
// The scripts beside this file provide them: ensure-server.sh one of the two,
// ensure-docker.sh an engine and an image, also without a registry.
//
// On Linux a server process also dies with the test binary, however that ends.
// Elsewhere a test binary killed by SIGKILL leaves its servers behind, and so do
// containers where Testcontainers may not run its reaper. Its temporary directories
// stay behind everywhere.
//
// # Topologies
//
// [Start] gives one server, [StartAll] several that know nothing of each other,
// [StartReplica] one that copies another, [StartSentinel] a master with replicas
// and the Sentinels that watch them, [StartCluster] a cluster. The options apply
// to all servers of a topology. Package integration makes these alike.
//
// # Leak checks
//
// A running server process costs one goroutine, which ends when the server
// does. [VerifyMain], run after all tests, sees none of them. A check inside a test needs
// goleak.IgnoreCurrent, taken after Start.
package redistest
