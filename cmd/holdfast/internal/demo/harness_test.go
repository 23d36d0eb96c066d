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

// perfect returns the history of a demo in which everything goes as promised, ordered by time.
func perfect() []event {
	var h []event
	add := func(lock, process string, kind kind, at time.Duration) *event {
		h = append(h, event{At: at, Kind: kind, Process: process, Lock: lock})
		return &h[len(h)-1]
	}
	stays := func(lock, process string, from, to time.Duration) {
		add(lock, process, entered, from).Owner = "client of " + process + ":1"
		add(lock, process, leaving, to)
		add(lock, process, left, to+ms)
	}
	at := ms
	for n := range 12 {
		for _, process := range []string{"ada", "ben", "cleo", "dan"} {
			add("counter", process, waiting, at-ms)
			if n%3 == 0 {
				add("counter", process, nested, at+10*ms)
			}
			stays("counter", process, at, at+100*ms)
			at += 110 * ms
		}
	}
	add("queue", "kate", waiting, 0)
	stays("queue", "kate", ms, 2000*ms)
	for i, process := range []string{"liam", "mia", "noah", "olga", "paul"} {
		add("queue", process, waiting, time.Duration(100+100*i)*ms)
		add("queue", process, queued, time.Duration(120+100*i)*ms)
	}
	gave := add("queue", "mia", gaveUp, 1701*ms)
	gave.Owner, gave.TTL = "client of kate:1", 8300*ms
	add("queue", "olga", killed, 1000*ms)
	add("queue", "olga", ended, 1001*ms)
	stays("queue", "liam", 2002*ms, 2300*ms)
	stays("queue", "noah", 2302*ms, 2600*ms)
	add("queue", "noah", waiting, 2900*ms)
	add("queue", "noah", queued, 2920*ms)
	stays("queue", "paul", 5500*ms, 5800*ms)
	stays("queue", "noah", 5802*ms, 6100*ms)

	for i, process := range []string{"quinn", "rosa"} {
		add("readwrite", process, waiting, 0)
		stays("readwrite", process, ms, time.Duration(600+300*i)*ms)
	}
	add("readwrite", "wim", waiting, 100*ms)
	add("readwrite", "wim", queued, 110*ms)
	stays("readwrite", "wim", 902*ms, 1500*ms)
	for i, process := range []string{"sam", "tess", "uma"} {
		add("readwrite", process, waiting, time.Duration(200+500*i)*ms)
		stays("readwrite", process, 1502*ms, time.Duration(1800+300*i)*ms)
	}
	for i := range h {
		if h[i].Lock == "readwrite" && h[i].Kind == entered {
			h[i].Shared = h[i].Process != "wim"
		}
	}

	at = ms
	for range 4 {
		for _, process := range []string{"yuri", "zoe"} {
			add("transfer", process, waiting, at-ms)
			stays("transfer", process, at, at+240*ms)
			at += 250 * ms
		}
	}

	add("redlock", "vera", waiting, 0)
	stays("redlock", "vera", 5*ms, 2400*ms)
	add("redlock", "node5", died, 350*ms)
	at = 2402 * ms
	for n := range 4 {
		for _, process := range []string{"walt", "xena"} {
			asks := at - 10*ms
			if n == 0 {
				asks = 50 * ms
			}
			add("redlock", process, waiting, asks)
			stays("redlock", process, at, at+140*ms)
			at += 142 * ms
		}
	}
	add("redlock", "node1", died, 2900*ms)

	add("watchdog", "gina", waiting, 0)
	add("watchdog", "gina", entered, ms).Owner = "client of gina:1"
	add("watchdog", "hugo", waiting, 40*ms)
	add("watchdog", "jack", waiting, 40*ms)
	gave = add("watchdog", "jack", gaveUp, 1541*ms)
	gave.Owner, gave.TTL = "client of gina:1", 900*ms
	add("watchdog", "gina", killed, 3550*ms)
	add("watchdog", "gina", ended, 3560*ms)
	stays("watchdog", "hugo", 4400*ms, 4900*ms)

	slices.SortStableFunc(h, byTime)
	return h
}

const perfectSections = 48 + 5 + 6 + 8 + 9 + 2

// played are the scenes as they are judged.
func played() []scene { return scenes("", server{}, false) }

// change returns the history with one event of a process changed.
func change(h []event, process string, kind kind, how func(*event)) []event {
	i := slices.IndexFunc(h, func(e event) bool { return e.Process == process && e.Kind == kind })
	how(&h[i])
	slices.SortStableFunc(h, byTime)
	return h
}

// without returns the history without the first n events of that kind of a process.
func without(h []event, process string, kind kind, n int) []event {
	return slices.DeleteFunc(h, func(e event) bool {
		n--
		if e.Process != process || e.Kind != kind {
			n++
			return false
		}
		return n >= 0
	})
}

// after returns the history with all later events of a process changed.
func after(h []event, process string, at time.Duration, how func(*event)) []event {
	for i := range h {
		if h[i].Process == process && h[i].At > at {
			how(&h[i])
		}
	}
	slices.SortStableFunc(h, byTime)
	return h
}
