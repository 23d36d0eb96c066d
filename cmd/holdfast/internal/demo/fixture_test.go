package demo

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"holdfast/internal/redistest"
)

// TestMain makes the test binary a worker when the demo under test starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		if err := Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	redistest.VerifyMain(m)
}

const ms = time.Millisecond

// perfect is the history of a demo in which all goes as promised, in the order of time.
func perfect() []event {
	var h []event
	add := func(lock, process string, kind kind, at time.Duration) *event {
		h = append(h, event{At: at, Kind: kind, Process: process, Lock: lock})
		return &h[len(h)-1]
	}
	stays := func(lock, process string, from, to time.Duration) {
		add(lock, process, entered, from).Owner = "client of " + process + ":1"
		add(lock, process, leaving, to).Found = process
		add(lock, process, left, to+ms)
	}
	at := ms
	for n := range counterSections {
		for _, process := range []string{"ada", "ben", "cleo", "dan"} {
			add("counter", process, waiting, at-ms)
			if n%counterNestEvery == 0 {
				add("counter", process, nested, at+10*ms).Count = 2
				add("counter", process, unnested, at+20*ms)
			}
			stays("counter", process, at, at+100*ms)
			at += 110 * ms
		}
	}
	add("watchdog", "eve", waiting, 0)
	stays("watchdog", "eve", ms, 4010*ms)
	add("watchdog", "finn", waiting, 40*ms)
	stays("watchdog", "finn", 4012*ms, 4500*ms)

	add("takeover", "gina", waiting, 0)
	add("takeover", "gina", entered, ms).Owner = "client of gina:1"
	add("takeover", "gina", killed, 2050*ms)
	add("takeover", "gina", ended, 2060*ms)
	add("takeover", "hugo", waiting, 50*ms)
	stays("takeover", "hugo", 2900*ms, 3400*ms)

	add("timeout", "iris", waiting, 0)
	stays("timeout", "iris", 2*ms, 1600*ms)
	add("timeout", "jack", waiting, 40*ms)
	gave := add("timeout", "jack", gaveUp, 1541*ms)
	gave.Owner, gave.TTL = "client of iris:1", 28_461*ms

	slices.SortStableFunc(h, byTime)
	return h
}

const perfectSections = 4*counterSections + 2 + 2 + 1

// change returns the history with one event of a process changed.
func change(h []event, process string, kind kind, how func(*event)) []event {
	i := slices.IndexFunc(h, func(e event) bool { return e.Process == process && e.Kind == kind })
	how(&h[i])
	slices.SortStableFunc(h, byTime)
	return h
}

// without returns the history without the events of that kind of a process.
func without(h []event, process string, kind kind) []event {
	return slices.DeleteFunc(h, func(e event) bool { return e.Process == process && e.Kind == kind })
}
