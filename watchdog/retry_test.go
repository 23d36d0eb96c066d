package watchdog

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailedBatchIsRetriedAtOnceAndDelaysNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		var failed failures
		w := watch(t, Options{Renew: s.renew, BatchSize: 1, OnFailure: failed.add})
		bad, badLost := addNew(w, "node", true)
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			if c.leases[0] == bad && len(s.of(bad)) <= 3 {
				return nil, errNode
			}
			return all(c.leases, true), nil
		})
		for range 9 {
			addNew(w, "node", true)
		}
		sleep(lease / 3)
		sleep(lease / 30 * 3) // long enough for three retries

		calls := s.seen()
		require.Len(t, calls, 13, "ten batches and three retries")
		tick := calls[0].at
		for _, c := range calls[:10] {
			require.Equal(t, tick, c.at, "the first tries wait for nothing")
		}
		tries := s.of(bad)
		require.Len(t, tries, 4)
		require.Equal(t, tries[1:], calls[10:], "the failed batch is queued last")
		// lease/300, doubled each time
		for i, pause := range []time.Duration{
			100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
		} {
			require.GreaterOrEqual(t, tries[i+1].at.Sub(tries[i].at), pause/2)
			require.LessOrEqual(t, tries[i+1].at.Sub(tries[i].at), pause)
		}
		require.True(t, bad.Deadline().Equal(Deadline(tries[3].at, lease)))
		of := failure{"node", 1, errNode}
		require.Equal(t, []failure{of, of, of}, failed.seen())
		require.Empty(t, badLost.seen())
	})
}

func TestFailingBatchIsRetriedUntilItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{reply: func(context.Context, call) ([]Outcome, error) { return nil, errNode }}
		w := watch(t, Options{Renew: s.renew})
		deadline := Deadline(time.Now(), lease)
		l, lost := addNew(w, "node", true)

		sleep(2 * lease)

		lost.require(t, deadline, ErrExpired)
		require.True(t, l.Deadline().Equal(deadline))
		calls := s.seen()
		require.GreaterOrEqual(t, len(calls), 20)
		require.LessOrEqual(t, len(calls), 50)
		last := calls[len(calls)-1].at
		require.True(t, last.Before(deadline))
		require.LessOrEqual(t, deadline.Sub(last), lease/30, "it gave up early")
		require.Empty(t, w.rounds)
	})
}

func TestLeaseWithoutAnOutcomeIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{reply: func(context.Context, call) ([]Outcome, error) { return nil, nil }}
		var failed failures
		w := watch(t, Options{Renew: s.renew, OnFailure: failed.add})
		_, lost := addNew(w, "node", true)

		sleep(lease / 3)

		require.NotEmpty(t, failed.seen())
		require.ErrorIs(t, failed.seen()[0].err, errNoOutcome)
		require.Empty(t, lost.seen())
	})
}

// A batch may be for two nodes, one of which does not reply. That must not cost the leases of the
// other.
func TestOnlyLeasesWithUnknownOutcomeAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		var failed failures
		w := watch(t, Options{Renew: s.renew, OnFailure: failed.add})
		answered, _ := addNew(w, "node", true)
		silent, lost := addNew(w, "node", true)
		gone, goneLost := addNew(w, "node", true)
		before := answered.Deadline()
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			outcomes := make([]Outcome, len(c.leases))
			for i, l := range c.leases {
				switch l {
				case answered:
					outcomes[i] = Held
				case gone:
					outcomes[i] = Gone
				}
			}
			return outcomes, errNode
		})

		sleep(lease/3 + lease/30) // the tick and at least one retry

		for _, of := range failed.seen() {
			require.Equal(t, failure{"node", 1, errNode}, of)
		}
		require.True(t, answered.Deadline().After(before))
		require.True(t, silent.Deadline().Equal(before))
		require.Empty(t, lost.seen())
		require.Len(t, goneLost.seen(), 1)
		require.Len(t, s.of(answered), 1)
		require.Greater(t, len(s.of(silent)), 1)
	})
}

func TestCallsOfDifferentTicksDoNotStarveEachOther(t *testing.T) {
	r := &round{}
	var added []*batch
	for _, due := range []time.Duration{10, 10, 30, 12, 30, 11} {
		added = append(added, &batch{due: due})
		r.add(added[len(added)-1])
	}
	var dues []time.Duration
	var order []int
	for _, b := range r.queue {
		dues, order = append(dues, b.due), append(order, slices.Index(added, b))
	}
	require.Equal(t, []time.Duration{10, 10, 11, 12, 30, 30}, dues)
	require.Equal(t, []int{0, 1, 5, 3, 2, 4}, order, "equally due batches keep their order")
}
