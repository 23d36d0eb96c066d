package demo

import (
	"fmt"
	"slices"
	"time"
)

// The transfer scene: processes move money between two accounts, in opposite directions, and each
// names the locks of both accounts in its own order. Acquired one by one in that order, the locks
// would soon deadlock.
const transferSections = 4

func transferScene() scene {
	s := scene{
		lock:  "transfer",
		title: "a MultiLock of two fair locks, named in opposite orders",
	}
	accounts := []string{"savings", "current"}
	for _, name := range []string{"yuri", "zoe"} {
		s.first = append(s.first, name)
		s.cast = append(s.cast, part{
			Process: name, Type: several, Accounts: slices.Clone(accounts),
			Sections: transferSections, Wait: longWait,
			Lease: 2 * time.Second, Outside: 20 * time.Millisecond,
		})
		slices.Reverse(accounts)
	}
	s.verdict = func(history []event) (faults []string) {
		for _, p := range s.cast {
			if n := count(history, p.Process, left); n != p.Sections {
				faults = append(faults,
					fmt.Sprintf("%s made %d transfers instead of %d", p.Process, n, p.Sections))
			}
		}
		for _, e := range history {
			if e.Sum != 0 {
				faults = append(faults,
					fmt.Sprintf("%s found %d in both accounts together instead of 0", e.Process,
						e.Sum))
				break
			}
		}
		return faults
	}
	return s
}
