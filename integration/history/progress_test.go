package history

import (
	"fmt"
	"testing"

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
