// Package chaos lets several client processes use locks while servers, networks and processes fail.
// Package history judges what they recorded. All kinds take part that can nest.
//
//	make chaos SECONDS=120 SEED=42
//	go test ./integration/chaos -v -run InVirtualTime
//
// A [Scenario] is a topology, the kinds of locks and the faults. [Run] starts the servers, puts a
// fault proxy between each process and each server, starts the processes and plays faults. At the
// end it checks that every lock is free again and nothing is left behind. The test process runs
// all this. A client process is the same binary in another role ([Client]).
//
// [Play] does the same in virtual time, with all of it in one process (bubble.go). Use it to look
// for mistakes of the library. Run shows that the library works with real servers, kernels and
// clocks.
//
// scenarios.go has the scenarios. worker.go, wander.go, hurry.go, abandon.go and keep.go have what
// the processes do. fault_*.go have the faults: of networks, servers and processes, and those that
// spare some locks. A new fault is a [Fault] in one of these files, and takes part once a scenario
// lists it. What differs between real servers and a bubble is behind the interfaces of world.go.
//
// On real servers, a seed draws the same faults each time, at slightly different moments. You may
// need a few runs to repeat a breach. So a run that fails keeps its history and picture in a
// temporary directory, and logs where, with the command to repeat it. [Play] says how far a seed
// repeats a run in virtual time.
package chaos
