package demo

import (
	"fmt"
	"time"

	"holdfast/rlock"
)

// The takeover scene: a holder whose lease is being renewed is killed. Nobody unlocks; the lock
// passes on when the rest of the lease is over.
const (
	takeoverLease     = time.Second
	takeoverKill      = 2 * takeoverLease // how long the victim holds the lock
	takeoverSuccessor = "hugo"
)

func takeoverScene() scene {
	const victim, successor = "gina", takeoverSuccessor
	return scene{
		lock:  "takeover",
		title: fmt.Sprintf("SIGKILL: nobody renews the lease of %s any more", brief(takeoverLease)),
		cast: []part{
			{Process: victim, Sections: 1, Wait: longWait, Lease: rlock.Watchdog,
				WatchdogLease: takeoverLease, Inside: untilCue},
			{Process: successor, Sections: 1, Wait: longWait, Lease: longWait,
				Inside: takeoverLease / 2},
		},
		first: []string{victim},
		react: func(cues cues, e event) {
			switch {
			case e.Process == victim && e.Kind == entered:
				cues.begin(successor)
			case e.Process == successor && e.Kind == waiting:
				cues.after(takeoverKill, func() { cues.kill(victim) })
			}
		},
		verdict: func(history []event) []string {
			killing, ok := findAll(history, victim, entered, killed)
			if _, released := find(history, victim, leaving); !ok || released {
				return []string{victim + " was not killed while holding the lock"}
			}
			won, ok := findAll(history, successor, waiting, entered)
			if !ok || won[0].At > killing[1].At {
				return []string{successor + " did not take over the lock of " + victim}
			}
			if took := won[1].At - killing[1].At; took > takeoverLease+slack {
				return []string{fmt.Sprintf("the lock of %s passed on %s after SIGKILL instead "+
					"of within its lease of %s",
					victim, brief(took), brief(takeoverLease))}
			}
			return nil
		},
	}
}
