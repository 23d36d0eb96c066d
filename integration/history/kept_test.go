package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// promised returns a hold with a deadline at 100 that is lost at another instant.
func promised(lock Lock, lost int) []Event {
	granted := did(10, "a", 1, Granted)
	granted.Until = at(100)
	return []Event{waitingFor(0, asked(0, "a", 1, lock)), granted, did(lost, "a", 1, Lost)}
}

// lasting returns a hold whose lease is not renewed.
func lasting(events []Event) []Event {
	events[0].Fixed = true
	return events
}

func TestHoldThatIsLostBeforeItsDeadlineIsABreach(t *testing.T) {
	verdict := inBreach(t, Kept, 1, promised(plain, 99))
	require.Contains(t, of(Kept, verdict.Breaches)[0].Text, "was lost 1ms before its deadline")
	kept(t, Kept, lasting(promised(plain, 100)))
	inBreach(t, Kept, 1, append(promised(plain, 99)[:2], did(98, "a", 1, Releasing),
		did(99, "a", 1, NotHeld)))
	// The latest deadline counts.
	later := did(20, "a", 1, Valid)
	later.Until = at(200)
	inBreach(t, Kept, 1, append(lasting(promised(plain, 150)), later))
}

func TestHoldThatTheServersForgotMayBeLostBeforeItsDeadline(t *testing.T) {
	verdict := kept(t, Kept, promised(plain, 99), fault("flush", 50, 60))
	require.Len(t, of(Kept, verdict.Expected), 1)
	inBreach(t, Kept, 1, promised(plain, 99), fault("flush", 99, 110))
	inBreach(t, Kept, 1, promised(plain, 99), fault("cut", 50, 60))
}

func TestRenewedHoldIsLostOnlyNearAFault(t *testing.T) {
	verdict := inBreach(t, Kept, 1, promised(plain, 5000))
	require.Contains(t, of(Kept, verdict.Breaches)[0].Text,
		"although it is renewed and no fault was near")
	require.Positive(t, kept(t, Kept, lasting(promised(plain, 5000))).Judged[Kept])
	later := []Event{asked(2000, "a", 1, plain), did(2001, "a", 1, Granted), did(5000, "a", 1, Lost)}
	// A fault counts from a command and a lease before the request, in its own process.
	inBreach(t, Kept, 1, later, fault("cut", 100, 799, "a"))
	inBreach(t, Kept, 0, later, fault("cut", 100, 800, "a"))
	inBreach(t, Kept, 1, later, fault("cut", 100, 4000, "b"))
	// Unlock finds out.
	inBreach(t, Kept, 1, append(later[:2:2], did(5000, "a", 1, Releasing),
		did(5001, "a", 1, NotHeld)))
	require.Positive(t, kept(t, Kept, held("a", 1, plain, 2000, 2001, 5000, 5001)).Judged[Kept])
}

// sparing makes a fault no excuse for an invariant, except for some locks.
func sparing(invariant string, fault []Event, except ...string) []Event {
	fault[0].Spares, fault[0].Except = []string{invariant}, except
	return fault
}

func TestFaultThatSparesHeldLocksIsNoExcuseForALoss(t *testing.T) {
	inBreach(t, Kept, 0, promised(plain, 5000), fault("acl", 100, 6000))
	verdict := inBreach(t, Kept, 1, promised(plain, 5000), sparing(Kept, fault("acl", 100, 6000)))
	require.Contains(t, of(Kept, verdict.Breaches)[0].Text, "no fault was near but acl: ")
	inBreach(t, Kept, 0, promised(plain, 5000), sparing(Waits, fault("acl", 100, 6000)))
	inBreach(t, Kept, 1, promised(plain, 5000), sparing(Kept, fault("acl", 100, 6000), "other"))
	inBreach(t, Kept, 0, promised(plain, 5000), sparing(Kept, fault("acl", 100, 6000), plain.Name))
	inBreach(t, Kept, 0, promised(plain, 5000), sparing(Kept, fault("acl", 100, 6000)),
		fault("cut", 4000, 4001))
	late := func() []Event { // acquired within the fault, with a third of the lease left
		granted := did(2670, "a", 1, Granted)
		granted.Until = at(2900)
		return []Event{{At: at(2000), What: Asked, Process: "a", Number: 1, Locks: []Lock{plain},
			Lease: 1000 * ms}, granted, did(2901, "a", 1, Lost)}
	}
	inBreach(t, Kept, 0, late(), sparing(Kept, fault("acl", 1900, 6000)))
	inBreach(t, Kept, 1, late())
}
