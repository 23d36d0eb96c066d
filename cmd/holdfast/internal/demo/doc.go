// Package demo plays eight scenes with locks in several processes, shows them on a timeline, and
// judges them.
//
// [Run] is the stage: it starts one process per part, sends each its part and its cues on standard
// input, and reads its events from its standard output. [Work] is what such a process runs.
//
//	scenes.go     the scenes; each has a file of its own with its cast, cues and verdict
//	part.go       what a process is told; event.go: what it reports
//	worker.go     how a process plays its part; section.go: one section under a lock
//	queued.go     how a process knows that it is queued
//	marker.go     how processes notice each other inside
//	transfer.go   what is done under the locks of two accounts
//	quorum.go     how a process opens a lock on several servers
//	stage.go      starts and stops processes; process.go: one of them; merge.go: their order
//	board.go      who holds and who waits; plain.go and live.go show it, screen.go what fits
//	audit.go      whether sections overlapped or a waiter was overtaken; verdict.go: the result
//	embedded.go   the server if none is given; nodes.go: those of a scene; redis.go: addresses
//
// No process outlives the stage: each ends when its standard input does.
package demo
