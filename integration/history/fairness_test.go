package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func queue(from, until int, owners ...string) []Event {
	return []Event{{At: at(from), What: Queue, Name: "lock", Owners: owners, Until: at(until)}}
}

func TestLaterRequestMustNotOvertakeAQueuedWaiter(t *testing.T) {
	verdict := inBreach(t, Fairness, 1, queue(10, 11, "a"), held("b", 1, fair, 12, 20, 30, 31),
		held("a", 1, fair, 0, 32, 40, 41))
	require.Contains(t, of(Fairness, verdict.Breaches)[0].Text,
		`b#1 fair "lock" got it before a#1 fair "lock", which was in the queue before`)
	kept(t, Fairness, queue(10, 11, "a"), held("a", 1, fair, 0, 20, 30, 31),
		held("b", 1, fair, 12, 32, 40, 41))
	// b may have been in the queue before.
	inBreach(t, Fairness, 0, queue(10, 12, "a"), held("b", 1, fair, 12, 20, 30, 31),
		held("a", 1, fair, 0, 32, 40, 41))
	inBreach(t, Fairness, 0, held("b", 1, fair, 12, 20, 30, 31), held("a", 1, fair, 0, 32, 40, 41))
}

func TestTheQueueIsServedInItsOrder(t *testing.T) {
	a, b := held("a", 1, fair, 0, 32, 40, 41), held("b", 1, fair, 0, 20, 30, 31)
	verdict := inBreach(t, Fairness, 1, queue(10, 11, "a", "b"), queue(12, 13, "a", "x", "b"), a, b)
	require.Contains(t, of(Fairness, verdict.Breaches)[0].Text, "before it in the queue")
	kept(t, Fairness, queue(10, 11, "b", "a"), a, b)
	// It was not long enough ago to concern these.
	inBreach(t, Fairness, 0, queue(50, 51, "a", "b"), a, b)
}

func TestOnlyWaitersThatWereAliveKeepTheirPlace(t *testing.T) {
	a, b := held("a", 1, fair, 0, 32, 40, 41), held("b", 1, fair, 0, 20, 30, 31)
	inBreach(t, Fairness, 0, queue(10, 11, "a", "b"), a, b, fault("cut", 15, 16, "a"))
	inBreach(t, Fairness, 0, queue(10, 11, "a", "b"), a, b, fault("flush", 1, 2))
	inBreach(t, Fairness, 0, queue(10, 11, "a", "b"), a, b,
		[]Event{{At: at(14), What: Stopped, Process: "a"}})
	inBreach(t, Fairness, 1, queue(10, 11, "a", "b"), a, b, fault("cut", 15, 16, "c"))
}
