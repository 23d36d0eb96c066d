package history

import "testing"

func TestLockThatCannotBeAcquiredAtTheEndIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, freeAt(1253))
	inBreach(t, Remains, 1, hold, freeAt(1254))
	inBreach(t, Remains, 1, hold)
	inBreach(t, Remains, 1, hold,
		[]Event{{At: at(9), What: Held, Name: "lock", Error: "held by a"}})
	inBreach(t, Remains, 1, append(hold[:4:4], did(5, "a", 1, Unconfirmed)),
		[]Event{{At: at(9), What: Held, Name: "lock"}})
}

func TestLeaseAtTheEndCountsFromTheLastFault(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, fault("cut", 100, 200), freeAt(1450))
	inBreach(t, Remains, 1, hold, fault("cut", 100, 200), freeAt(1451))
	inBreach(t, Remains, 0, hold, []Event{{At: at(200), What: Killed, Process: "a"}}, freeAt(1450))
}

func TestWhatIsLeftBehindIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, freeAt(9), []Event{{At: at(8), What: Ended, Process: "a"}})
	inBreach(t, Remains, 1, hold, freeAt(9),
		[]Event{{At: at(8), What: Ended, Process: "a", Error: "2 goroutines"}})
	inBreach(t, Remains, 1, hold, freeAt(9), []Event{{At: at(8), What: Left, Error: "a key"}})
}

// Only the queue of a fair lock keeps registrations, and only of waiters that could not leave it.
func TestFairLockMayBeFreeLaterIfAWaiterIsLeftInItsQueue(t *testing.T) {
	late := freeAt(10_000)
	stopping := []Event{{At: at(150), What: Stopping}}
	of := func(l Lock) []Event { return held("a", 1, l, 0, 1, 2, 3) }
	inBreach(t, Remains, 0, of(fair), fault("cut", 100, 200), stopping, late)
	inBreach(t, Remains, 0, of(fair), []Event{{At: at(200), What: Killed, Process: "b"}}, late)

	inBreach(t, Remains, 1, of(plain), fault("cut", 100, 200), stopping, late)
	inBreach(t, Remains, 1, of(fair), fault("cut", 100, 149), stopping, late) // over before
	inBreach(t, Remains, 1, of(fair), stopping, late)
	inBreach(t, Remains, 1, of(fair), fault("cut", 100, 200), stopping, freeAt(17_000))
}
