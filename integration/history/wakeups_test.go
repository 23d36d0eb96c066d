package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaiterThatIsNotWokenIsABreach(t *testing.T) {
	verdict := inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21),
		held("b", 1, plain, 15, 72, 80, 81))
	b := of(WakeUps, verdict.Breaches)[0]
	require.Equal(t, at(21), b.At)
	require.Contains(t, b.Text, `b#1 plain "lock" waited for 51ms`)
	kept(t, WakeUps, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 71, 80, 81))
	// A call that gives up has waited, too; one without wait is not judged.
	gaveUp := []Event{waitingFor(85*ms, asked(15, "b", 1, plain)), did(100, "b", 1, Refused)}
	inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
	gaveUp[0].Wait = 0
	inBreach(t, WakeUps, 0, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
}

// excused fails unless no waiter is late, and none could have been seen to be.
func excused(t *testing.T, events ...[]Event) {
	t.Helper()
	require.Zero(t, inBreach(t, WakeUps, 0, events...).Judged[WakeUps])
}

func TestNoWaiterIsLateWhileAnotherMayHoldTheLock(t *testing.T) {
	b := held("b", 1, plain, 15, 500, 510, 511)
	kept(t, WakeUps, b, held("a", 1, plain, 0, 10, 450, 451))
	// Until the lease of a process that was killed must be over.
	late := func(millis int) []Event {
		return held("b", 1, plain, 15, millis, millis+10, millis+11)
	}
	killed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted),
		{At: at(20), What: Killed, Process: "a"}}
	excused(t, killed, late(20+1250+50))
	inBreach(t, WakeUps, 1, killed, late(20+1250+51))
	// Or until its explicit lease is over.
	fixed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)}
	excused(t, fixed, late(5000))
	fixed[0].Fixed = true
	excused(t, fixed, late(10+1050+50))
	inBreach(t, WakeUps, 1, fixed, late(10+1050+51))
}

func TestFaultOfTheWaiterExcusesItForAWhile(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	inBreach(t, WakeUps, 1, a, b)
	soon := held("b", 1, plain, 15, 250, 260, 261)
	inBreach(t, WakeUps, 1, a, soon)
	excused(t, a, soon, fault("cut", 30, 40, "b"))
	excused(t, a, soon, fault("cut", 30, 40))
	inBreach(t, WakeUps, 1, a, b, fault("cut", 30, 40, "c"))
	// Until the fault has settled, and for one more command.
	late := func(millis int) []Event { return held("b", 1, plain, 15, millis, 1400, 1401) }
	excused(t, a, late(40+200+50), fault("cut", 30, 40, "b"))
	inBreach(t, WakeUps, 1, a, late(40+200+51), fault("cut", 30, 40, "b"))
	excused(t, a, late(70+200+50), settling(70, fault("cut", 30, 40, "b")))
	inBreach(t, WakeUps, 1, a, late(70+200+51), settling(70, fault("cut", 30, 40, "b")))
}
