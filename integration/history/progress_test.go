package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stall is longer than Bounds.WakeUp and Slack, 100 ms.

// impatient returns calls with a wait of 10 ms, one after the other between two instants, and the
// outcome of each.
func impatient(process string, lock Lock, from, to int, what What) []Event {
	var events []Event
	for i, at := 0, from; at < to; i, at = i+1, at+12 {
		events = append(events, waitingFor(10*ms, asked(at, process, i+1, lock)),
			did(at+11, process, i+1, what))
	}
	return events
}

func TestFreeLockThatIsNotGrantedDuringALongWaitIsABreachEvenIfOthersLeave(t *testing.T) {
	for _, lock := range []Lock{plain, fair, fenced, read, write} {
		for _, what := range []What{Refused, Unknown} {
			leaving := impatient("c", lock, 0, 3000, what)
			a := held("a", 1, lock, 0, 10, 20, 21)
			b := func(millis int) []Event { return held("b", 1, lock, 15, millis, 9010, 9011) }
			verdict := inBreach(t, Progress, 1, a, b(122), leaving)
			breach := of(Progress, verdict.Breaches)[0]
			require.Equal(t, at(21), breach.At)
			require.Contains(t, breach.Text, fmt.Sprintf(`"lock" was granted to nobody for 101ms, `+
				`longer than 100ms, although nobody had it; `+
				`1 waited patiently, such as b#1 %s "lock"`, lock.Kind))
			inBreach(t, Progress, 0, a, b(121), leaving)
		}
	}
	// Unclear outcomes excuse a late wake-up.
	inBreach(t, WakeUps, 0, held("a", 1, plain, 0, 10, 20, 21),
		held("b", 1, plain, 15, 122, 9010, 9011), impatient("c", plain, 0, 3000, Unknown))
}

func TestShortWaitsProveNoStall(t *testing.T) {
	inBreach(t, Progress, 0, impatient("a", plain, 0, 5000, Refused),
		impatient("b", plain, 0, 5000, Unknown))
	// Nor does a call that does not wait, or one for a MultiLock.
	inBreach(t, Progress, 0,
		[]Event{waitingFor(0, asked(0, "a", 1, plain)), did(5000, "a", 1, Refused)})
	both := []Event{asked(0, "a", 1, plain), did(5000, "a", 1, Refused)}
	both[0].Locks = append(both[0].Locks, Lock{"other", Plain})
	inBreach(t, Progress, 0, both)
}

func TestSeveralLongWaitsProveAStall(t *testing.T) {
	waits := func(process string, from, to int) []Event {
		return []Event{waitingFor(time.Duration(to-from)*ms, asked(from, process, 1, plain)),
			did(to, process, 1, Refused)}
	}
	verdict := inBreach(t, Progress, 1, waits("a", 0, 60), waits("b", 51, 101))
	require.Contains(t, of(Progress, verdict.Breaches)[0].Text, "2 waited patiently, such as a#1")
	inBreach(t, Progress, 0, waits("a", 0, 60), waits("b", 61, 161)) // for a moment no call waited
	inBreach(t, Progress, 0, waits("a", 0, 60), waits("b", 50, 100))
	inBreach(t, Progress, 0, waits("a", 0, 60), waits("b", 60, 200),
		[]Event{{At: at(100), What: Stopping}})
}

func TestStallEndsWhenTheLockIsGrantedToAny(t *testing.T) {
	b := held("b", 1, fair, 0, 201, 210, 211)
	inBreach(t, Progress, 1, b)
	verdict := inBreach(t, Progress, 0, b, held("c", 1, fair, 99, 100, 101, 101))
	require.Equal(t, 1, verdict.Judged[Progress])
}

func TestNothingIsExpectedWhileTheLockIsHeldOrItsLeaseLasts(t *testing.T) {
	b := func(millis int) []Event { return held("b", 1, fair, 15, millis, 9010, 9011) }
	inBreach(t, Progress, 0, held("a", 1, fair, 0, 10, 4000, 4001), b(4101))
	inBreach(t, Progress, 1, held("a", 1, fair, 0, 10, 4000, 4001), b(4102))
	dead := []Event{asked(0, "a", 1, fair), did(10, "a", 1, Granted)}
	dead[0].Fixed, dead[0].Lease = true, 300*ms
	inBreach(t, Progress, 0, dead, b(10+300+50+100))
	inBreach(t, Progress, 1, dead, b(10+300+50+101))
	both := held("c", 1, fair, 5, 400, 410, 411)
	both[0].Locks = append(both[0].Locks, Lock{"other", Plain})
	// keeps its parts while it waits for the rest
	inBreach(t, Progress, 0, held("a", 1, fair, 0, 10, 20, 21), both, b(511))
}

// The process of the fault does not matter: others may be in its way.
func TestProgressIsDueAfterAFaultWhenHoldsOfThatTimeAreOver(t *testing.T) {
	for _, lock := range []Lock{plain, fair} {
		over := 200 + 1000 + 200 // a lease and a command later
		b := func(millis int) []Event { return held("b", 1, lock, 15, millis, 9010, 9011) }
		leaving := impatient("c", lock, 0, 3000, Unknown)
		verdict := inBreach(t, Progress, 0, b(over+100), fault("cut", 20, 200, "c"), leaving)
		require.Zero(t, verdict.Judged[Progress])
		verdict = inBreach(t, Progress, 1, b(over+101), fault("cut", 20, 200, "c"), leaving)
		require.Equal(t, 1, verdict.Judged[Progress])
		inBreach(t, Progress, 0, b(over+300+100), settling(500, fault("cut", 20, 200)), leaving)
		inBreach(t, Progress, 1, b(over+300+101), settling(500, fault("cut", 20, 200)), leaving)
		inBreach(t, Progress, 1, b(over+101),
			[]Event{{At: at(20), What: Stopped, Process: "c"},
				{At: at(200), What: Resumed, Process: "c"}})
	}
}

func TestFairLockHasTwoSecondsAfterARequestToSkipADeadWaiter(t *testing.T) {
	killed := []Event{asked(5, "d", 1, fair), {At: at(20), What: Killed, Process: "d"}}
	over := 20 + 1000 + 200
	b := func(lock Lock, millis int) []Event {
		return held("b", 1, lock, 15, millis, 19_010, 19_011)
	}
	// Requests come all the time.
	leaving := func(lock Lock) []Event {
		return impatient("c", lock, over-1000, over+9000, Refused)
	}
	inBreach(t, Progress, 0, b(fair, over+2000+100), killed, leaving(fair))
	inBreach(t, Progress, 1, b(fair, over+2000+100+24+1), killed, leaving(fair))
	// No requests come, but waiters poll every five seconds.
	inBreach(t, Progress, 0, b(fair, over+5000+2000+5000+100), killed)
	inBreach(t, Progress, 1, b(fair, over+5000+2000+5000+101), killed)

	killed[0].Locks = []Lock{plain}
	inBreach(t, Progress, 0, b(plain, over+100), killed)
	inBreach(t, Progress, 1, b(plain, over+101), killed, leaving(plain))
}

func TestProgressIsJudgedWhereAStallWouldBeSeen(t *testing.T) {
	judged := func(events ...[]Event) int {
		return inBreach(t, Progress, 0, events...).Judged[Progress]
	}
	require.Equal(t, 1, judged(held("a", 1, plain, 0, 10, 150, 151),
		held("b", 1, plain, 15, 152, 153, 154)))
	wait := func(wait time.Duration) []Event {
		return []Event{waitingFor(wait, asked(0, "a", 1, plain)), did(1, "a", 1, Granted),
			did(2, "a", 1, Releasing), did(3, "a", 1, Released)}
	}
	require.Equal(t, 1, judged(wait(101*ms), freeAt(5000)))
	require.Zero(t, judged(wait(100*ms), freeAt(5000)))
	require.Zero(t, judged(wait(101*ms), []Event{{At: at(100), What: Stopping}}))
	require.Zero(t, judged(wait(101*ms), fault("cut", 50, 51)))
	require.Zero(t, judged(held("a", 1, Lock{"lock", Quorum}, 0, 10, 150, 151),
		held("b", 1, Lock{"lock", Quorum}, 15, 152, 153, 154)))
}
