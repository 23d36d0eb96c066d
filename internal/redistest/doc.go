// Package redistest starts real Redis servers for tests, and stops, pauses and restarts them to
// play the faults that a lock must survive.
//
// It never touches a server that it did not start. Each server listens on a free port of 127.0.0.1
// and works in its own temporary directory (in /dev/shm if there is room, because a busy disk
// delays servers). Its process id is checked before a test may use it, and the test's clean-up
// kills it by that id. A test that cannot have a server fails, with one line that says what is
// missing; it is never skipped.
//
// # Backends
//
// Without build tags a server is the one of package rlocktest, which runs inside the test process
// and needs nothing but Go. Tests that need more than that server can do are in files with the
// build tag redis. With that tag each server is a process: redis-server or valkey-server must be on
// PATH. These environment variables override that:
//
//	HOLDFAST_TEST_BACKEND  "inprocess", "process" or "docker"
//	HOLDFAST_TEST_SERVER   the program to run as a process, which makes processes the default;
//	                       defaults to redis-server, or else valkey-server
//	HOLDFAST_TEST_RESP     "2" makes clients speak RESP2
//	HOLDFAST_TEST_PROFILE  "managed" or "serverless": servers refuse what managed services do
//	HOLDFAST_TEST_SCRIPTS  changes the scripts of clients, see [WithScripts]: "declared",
//	                       "sharded", or "refusing" and commands
//
// The script ensure-server.sh beside this file installs a server where there is none. Containers
// are for the tests of package integration only, see integration/containers.
//
// On Linux a server process dies with the test binary, however that ends. Elsewhere a test binary
// killed by SIGKILL leaves its servers behind. Its temporary directories stay behind everywhere.
//
// # Topologies
//
// [Start] starts one server, [StartAll] several that know nothing of each other, [StartReplica] one
// that copies another, [StartSentinel] a master with replicas and the Sentinels that watch them,
// [StartCluster] a cluster. The options apply to all servers of a topology. Package integration
// gives these one interface.
//
// # Leak checks
//
// A running server process costs one goroutine, which ends with the server. [VerifyMain], run after
// all tests, sees none of them. A check inside a test needs goleak.IgnoreCurrent, called after
// Start.
package redistest
