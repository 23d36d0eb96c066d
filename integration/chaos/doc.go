// Package chaos lets several client processes use locks of all kinds while servers, networks and
// processes fail. Package history judges what they recorded.
//
//	make chaos SECONDS=120 SEED=42
//	go test ./integration/chaos -v -run InVirtualTime
//
// A [Scenario] is a topology, the kinds of locks and the faults. [Run] starts the servers, puts a
// fault proxy between each process and each server, starts the processes and plays faults. At the
// end it checks that every lock is free again and nothing is left behind. The runner is the test; a
// process is the test binary in another role ([Client]). worker.go has what the processes do, and
// fault_*.go the faults: one file each for networks, servers and processes.
//
// [Play] does the same in virtual time, with all of it in one process (bubble.go). That is where to
// look for mistakes of the library. Run shows that it works with real servers, kernels and clocks.
//
// A seed draws the same faults each time, at slightly different moments: a breach in one run may
// need a few runs to repeat. So a failing run keeps its history, its picture and the command that
// repeats it.
package chaos
