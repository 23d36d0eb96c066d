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

func TestWhatIsLeftBehindIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, freeAt(9), []Event{{At: at(8), What: Ended, Process: "a"}})
	inBreach(t, Remains, 1, hold, freeAt(9),
		[]Event{{At: at(8), What: Ended, Process: "a", Error: "2 goroutines"}})
	inBreach(t, Remains, 1, hold, freeAt(9), []Event{{At: at(8), What: Left, Error: "a key"}})
}
