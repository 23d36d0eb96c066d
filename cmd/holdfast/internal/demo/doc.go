// Package demo plays eight scenes with locks in several processes, tells what happens, and judges
// it.
//
// [Run] starts one process per part, sends each its part and its cues on standard input, and reads
// its events from its standard output. [Work] is what such a process runs.
//
//	scene.go      what a scene is: parts, cues and promises, all of them data; scenes.go: the eight
//	event.go      what a process reports
//	worker.go     how a process plays its part; section.go: what it does under the lock
//	stage.go      gives cues and collects events; process.go: one process as the stage sees it
//	story.go      tells the events in words; screen.go: where it shows them, and the locks in Redis
//	audit.go      whether sections overlapped or a waiter was overtaken; stall.go: what excuses it
//	verdict.go    the result
//	servers.go    the server, those of a scene, and an embedded one
//
// No process outlives the demo: each ends when its standard input does.
package demo
