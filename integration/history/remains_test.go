package history

import "testing"

func TestALockThatCannotBeTakenAtTheEndIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, freeAt(1253))
	inBreach(t, Remains, 1, hold, freeAt(1254))
	inBreach(t, Remains, 1, hold)
	inBreach(t, Remains, 1, hold, []Event{{At: at(9), What: Taken, Name: "lock", Error: "held by a"}})
	inBreach(t, Remains, 1, append(hold[:4:4], did(5, "a", 1, Doubtful)), []Event{{At: at(9), What: Taken, Name: "lock"}})
}

func TestTheLeaseAtTheEndCountsFromTheLastFault(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, fault("cut", 100, 200), freeAt(1450))
	inBreach(t, Remains, 1, hold, fault("cut", 100, 200), freeAt(1451))
	inBreach(t, Remains, 0, hold, []Event{{At: at(200), What: Killed, Process: "a"}}, freeAt(1450))
}

func TestWhatIsLeftBehindIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	inBreach(t, Remains, 0, hold, freeAt(9), []Event{{At: at(8), What: Ended, Process: "a"}})
	inBreach(t, Remains, 1, hold, freeAt(9), []Event{{At: at(8), What: Ended, Process: "a", Error: "2 goroutines"}})
	inBreach(t, Remains, 1, hold, freeAt(9), []Event{{At: at(8), What: Left, Error: "a key"}})
}
