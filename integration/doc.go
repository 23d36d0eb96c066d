// Package integration starts the servers that the tests of the whole library want, each in one line:
//
//	servers := integration.Start(t, integration.Cluster, integration.TLS)
//
// A [Topology] says how many servers there are and what they know of each other, a [Variant] how one gets into them and what
// they keep. [Servers] then looks the same for all of them: clients, the servers' roles, and faults. What a topology cannot
// do, such as to move a slot of a single server, fails the test and says so. A test over everything is a loop:
//
//	for _, topology := range integration.Topologies() {
//		for _, variant := range integration.Variants() {
//			t.Run(topology.String()+"/"+variant.String(), func(t *testing.T) {
//				servers := integration.Start(t, topology, variant)
//
// The servers are those of package redistest, whose documentation says where they come from: containers or processes. A test
// that fails shows the logs of all of them.
package integration
