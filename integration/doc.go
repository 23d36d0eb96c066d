// Package integration starts the servers of the tests of the whole library, each in one line:
//
//	servers := integration.Start(t, integration.Cluster, integration.TLS)
//
// A [Topology] is how many servers there are and what they know of each other. A [Variant] is how
// clients connect to them, and what they store. [Servers] is the same for all: clients, the
// servers' roles, and faults. An operation that a topology does not have, such as moving the slot
// of a single server, fails the test with a message. A test of everything is a loop over
// [Topologies].
//
// The servers are those of package redistest, whose documentation says where they come from:
// containers or processes. A failing test shows the logs of all of them.
package integration
