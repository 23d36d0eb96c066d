package demo

import (
	"fmt"
	"time"
)

// The timeout scene: a holder has a long lease, and a contender does not wait that long.
const (
	timeoutLease = 30 * time.Second
	timeoutWait  = 1500 * time.Millisecond
)

func timeoutScene() scene {
	const holder, loser = "iris", "jack"
	return scene{
		lock: "timeout",
		title: fmt.Sprintf("a lease of %s, and one who waits %s", brief(timeoutLease),
			brief(timeoutWait)),
		cast: []part{
			{Process: holder, Sections: 1, Wait: longWait, Lease: timeoutLease, Inside: untilCue},
			{Process: loser, Sections: 1, Wait: timeoutWait, Lease: timeoutLease},
		},
		first: []string{holder},
		react: func(cues cues, e event) {
			switch {
			case e.Process == holder && e.Kind == entered:
				cues.begin(loser)
			case e.Process == loser && (e.Kind == gaveUp || e.Kind == entered):
				cues.leave(holder)
			}
		},
		verdict: func(history []event) []string {
			held, ok := find(history, holder, entered)
			lost, ok2 := findAll(history, loser, waiting, gaveUp)
			if !ok || !ok2 {
				return []string{loser + " did not give up"}
			}
			result := lost[1]
			if waited := result.At - lost[0].At; waited < timeoutWait ||
				waited > timeoutWait+slack {
				return []string{fmt.Sprintf("%s gave up after %s instead of %s", loser,
					brief(waited), brief(timeoutWait))}
			}
			if result.Owner != held.Owner || result.TTL <= 0 ||
				result.TTL > timeoutLease-timeoutWait {
				return []string{fmt.Sprintf("%s heard that %q holds the lock for another %s; it "+
					"was %q, for less than %s",
					loser, result.Owner, brief(result.TTL), held.Owner,
					brief(timeoutLease-timeoutWait))}
			}
			return nil
		},
	}
}
