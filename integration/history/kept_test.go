package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// promised is a hold whose deadline was seen to be at 100, and which is lost at another instant.
func promised(lock Lock, lost int) []Event {
	granted := did(10, "a", 1, Granted)
	granted.Until = at(100)
	return []Event{waitingFor(0, asked(0, "a", 1, lock)), granted, did(lost, "a", 1, Lost)}
}

func TestAHoldThatIsLostBeforeItsDeadlineIsABreach(t *testing.T) {
	verdict := inBreach(t, Kept, 1, promised(plain, 99))
	require.Contains(t, of(Kept, verdict.Breaches)[0].Text, "was lost 1ms before its deadline")
	kept(t, Kept, promised(plain, 100))
	inBreach(t, Kept, 1, append(promised(plain, 99)[:2], did(98, "a", 1, Releasing), did(99, "a", 1, NotHeld)))
	// The latest deadline counts.
	later := did(20, "a", 1, Valid)
	later.Until = at(200)
	inBreach(t, Kept, 1, append(promised(plain, 150), later))
}

func TestAHoldThatTheServersForgotMayBeLostBeforeItsDeadline(t *testing.T) {
	verdict := kept(t, Kept, promised(plain, 99), fault("flush", 50, 60))
	require.Len(t, of(Kept, verdict.Expected), 1)
	inBreach(t, Kept, 1, promised(plain, 99), fault("flush", 99, 110))
	inBreach(t, Kept, 1, promised(plain, 99), fault("cut", 50, 60))
}

func TestHoldsThatMayBeGivenUpAreNotJudged(t *testing.T) {
	require.Zero(t, inBreach(t, Kept, 0, promised(Lock{"lock", Quorum}, 99)).Judged[Kept])
	inner := promised(read, 99)
	inner[0].Root = 7
	require.Zero(t, inBreach(t, Kept, 0, inner).Judged[Kept])
	require.Positive(t, inBreach(t, Kept, 1, promised(read, 99)).Judged[Kept])
}
