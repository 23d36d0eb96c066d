// Package chaos lets several client processes use locks of all kinds while servers, networks and processes fail, and has
// package history judge what was recorded.
//
//	make chaos SECONDS=120 SEED=42
//
// A [Scenario] is a topology, the kinds of locks and the faults. [Run] starts the servers, puts a fault proxy between each
// process and each server, starts the processes, plays faults, and in the end sees to it that every lock is free again and
// that nothing is left behind. The runner is the test; a process is the test binary in another part ([Client]). What the
// processes do is in worker.go, the faults are in fault_*.go, one file each for networks, servers and processes.
//
// The same seed draws the same faults, at slightly different moments: what breaks in one run may need a few to break again. So a
// run that fails writes down its history, its picture and the command that repeats it.
package chaos
