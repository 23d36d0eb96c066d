package demo

import (
	"fmt"
	"time"

	"holdfast/rlock"
)

// The watchdog scene: a holder stays for several leases while another process waits.
const (
	watchdogLease  = time.Second
	watchdogLeases = 4
)

func watchdogScene() scene {
	const holder, waiter = "eve", "finn"
	return scene{
		lock:  "watchdog",
		title: fmt.Sprintf("a lease of %s, renewed while its holder lives", brief(watchdogLease)),
		cast: []part{
			{
				Process: holder, Sections: 1, Wait: longWait, Lease: rlock.Watchdog,
				WatchdogLease: watchdogLease,
				Inside:        watchdogLeases * watchdogLease,
			},
			{Process: waiter, Sections: 1, Wait: longWait, Lease: longWait,
				Inside: watchdogLease / 2},
		},
		first: []string{holder},
		react: func(cues cues, e event) {
			if e.Process == holder && e.Kind == entered {
				cues.begin(waiter)
			}
		},
		verdict: func(history []event) []string {
			held, ok := findAll(history, holder, entered, leaving, left)
			if !ok || held[1].At-held[0].At < watchdogLeases*watchdogLease {
				return []string{fmt.Sprintf("%s did not hold the lock for %d leases", holder,
					watchdogLeases)}
			}
			waited, ok := findAll(history, waiter, waiting, entered)
			if !ok || waited[0].At > held[1].At || waited[1].At < held[1].At {
				return []string{waiter + " did not wait until " + holder + " let go"}
			}
			return nil
		},
	}
}
