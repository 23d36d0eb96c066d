package watchdog

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeaseIsRenewedEveryThird(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		added := time.Now()
		l, lost := addNew(w, "node", true)

		sleep(time.Hour)

		calls := s.seen()
		require.GreaterOrEqual(t, len(calls), 360)
		require.LessOrEqual(t, len(calls), 400)
		last := added
		for _, c := range calls {
			require.Equal(t, []*Lease{l}, c.leases)
			require.GreaterOrEqual(t, c.at.Sub(last), lease*30/100, "interval shorter than the jitter allows")
			require.LessOrEqual(t, c.at.Sub(last), lease/3, "a lease waited for longer than a third")
			last = c.at
		}
		require.True(t, l.Deadline().Equal(Deadline(last, lease)), "the deadline counts from the last renewal")
		require.Empty(t, lost.seen())
	})
}

func TestIntervalsDiffer(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		interval := jitteredInterval(lease)
		require.LessOrEqual(t, interval, lease/3)
		require.GreaterOrEqual(t, interval, lease*30/100)
		seen[interval] = true
	}
	require.Greater(t, len(seen), 90)
}

func TestTenThousandLeasesCostOneGoroutineAndAHundredCallsAPeriod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		for range 10_000 {
			addNew(w, "node", true)
		}
		synctest.Wait()
		require.Equal(t, 1, goroutines())

		for period := 1; period <= 5; period++ {
			w.mu.Lock()
			next := w.nextTick
			w.mu.Unlock()
			sleep(time.Until(epoch.Add(next)))

			require.Len(t, s.seen(), 100*period)
			require.Equal(t, 1, goroutines())
		}
		for _, c := range s.seen() {
			require.Len(t, c.leases, 100)
		}
	})
}

// goroutines is how many goroutines are at work for watchdogs. It looks at stacks because runtime.NumGoroutine counts
// those of earlier tests for a moment after they ended.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "watchdog.(*Watchdog).") {
			n++
		}
	}
	return n
}

func TestGroupsNeverShareACall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew, BatchSize: 3})
		for range 4 {
			addNew(w, "a", true)
			addNew(w, "b", true)
		}
		sleep(lease / 3)

		sizes := map[string][]int{}
		for _, c := range s.seen() {
			sizes[c.group] = append(sizes[c.group], len(c.leases))
			for _, l := range c.leases {
				require.Equal(t, c.group, l.Group)
			}
		}
		require.Equal(t, map[string][]int{"a": {3, 1}, "b": {3, 1}}, sizes)
	})
}

func TestHungGroupDelaysNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{answer: func(ctx context.Context, c call) ([]Outcome, error) {
			if c.group == "hung" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew})
		added := time.Now()
		hung, hungLost := addNew(w, "hung", true)
		var others []*Lease
		for _, group := range []string{"a", "b", "c"} {
			l, _ := addNew(w, group, true)
			others = append(others, l)
		}
		sleep(lease)

		for _, l := range others {
			calls := s.of(l)
			require.GreaterOrEqual(t, len(calls), 3)
			require.LessOrEqual(t, calls[0].at.Sub(added), lease/3)
			require.LessOrEqual(t, calls[1].at.Sub(calls[0].at), lease/3)
		}
		require.Greater(t, len(s.of(hung)), 1, "a call that timed out is tried again")
		hungLost.require(t, Deadline(added, lease), ErrExpired)
	})
}

func TestFailedBatchIsTriedAgainAtOnceAndStopsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		failures := 0
		w := watch(t, Options{Renew: s.renew, BatchSize: 1, OnFailure: func(group string, batch int, err error) {
			require.Equal(t, "node", group)
			require.Equal(t, 1, batch)
			require.ErrorIs(t, err, errNode)
			failures++ // one group: one goroutine at a time
		}})
		bad, badLost := addNew(w, "node", true)
		s.answerWith(func(_ context.Context, c call) ([]Outcome, error) {
			if c.leases[0] == bad && len(s.of(bad)) <= 3 {
				return nil, errNode
			}
			return all(c.leases, true), nil
		})
		for range 9 {
			addNew(w, "node", true)
		}
		sleep(lease / 3)
		sleep(lease / 30 * 3) // the tries that the back-off allows

		calls := s.seen()
		require.Len(t, calls, 13, "ten batches and three more tries")
		tick := calls[0].at
		for _, c := range calls[:10] {
			require.Equal(t, tick, c.at, "the first tries wait for nothing")
		}
		tries := s.of(bad)
		require.Len(t, tries, 4)
		require.Equal(t, tries[1:], calls[10:], "the failed batch goes to the end of the line")
		// lease/300, doubled each time
		for i, pause := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			require.GreaterOrEqual(t, tries[i+1].at.Sub(tries[i].at), pause/2)
			require.LessOrEqual(t, tries[i+1].at.Sub(tries[i].at), pause)
		}
		require.True(t, bad.Deadline().Equal(Deadline(tries[3].at, lease)))
		require.Equal(t, 3, failures)
		require.Empty(t, badLost.seen())
	})
}

func TestFailingBatchIsTriedUntilItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{answer: func(context.Context, call) ([]Outcome, error) { return nil, errNode }}
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
		s := &store{answer: func(context.Context, call) ([]Outcome, error) { return nil, nil }}
		var failure error
		w := watch(t, Options{Renew: s.renew, OnFailure: func(_ string, _ int, err error) { failure = err }})
		_, lost := addNew(w, "node", true)

		sleep(lease / 3)

		require.ErrorIs(t, failure, errNoOutcome)
		require.Empty(t, lost.seen())
	})
}

// A batch may meet two nodes, one of which does not answer. That must not cost the leases of the other one.
func TestOnlyLeasesOfUnknownOutcomeAreTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		unknown := 0
		w := watch(t, Options{Renew: s.renew, OnFailure: func(_ string, leases int, err error) {
			require.ErrorIs(t, err, errNode)
			unknown = leases
		}})
		answered, _ := addNew(w, "node", true)
		silent, lost := addNew(w, "node", true)
		gone, goneLost := addNew(w, "node", true)
		before := answered.Deadline()
		s.answerWith(func(_ context.Context, c call) ([]Outcome, error) {
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

		sleep(lease/3 + lease/30) // the tick and at least one more try

		require.Equal(t, 1, unknown)
		require.True(t, answered.Deadline().After(before))
		require.True(t, silent.Deadline().Equal(before))
		require.Empty(t, lost.seen())
		require.Len(t, goneLost.seen(), 1)
		require.Len(t, s.of(answered), 1)
		require.Greater(t, len(s.of(silent)), 1)
	})
}

func TestCallEndsAfterItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var took time.Duration
		w := watch(t, Options{CallTimeout: time.Second, Renew: func(ctx context.Context, _ string, leases []*Lease) ([]Outcome, error) {
			start := time.Now()
			<-ctx.Done()
			took = time.Since(start)
			return all(leases, true), nil // late, but it is an answer
		}})
		l, _ := addNew(w, "node", true)
		before := l.Deadline()

		sleep(lease/3 + time.Second)

		require.Equal(t, time.Second, took)
		require.True(t, l.Deadline().After(before))
	})
}

func TestGroupThatIsBusyAtATickGetsNoSecondGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		running, most := 0, 0
		s := &store{answer: func(_ context.Context, c call) ([]Outcome, error) {
			running++ // the race detector watches: calls of a group never overlap
			most = max(most, running)
			<-release
			running--
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew, BatchSize: 1})
		first, _ := addNew(w, "node", true)
		sleep(lease / 3)
		require.Len(t, s.seen(), 1)
		second, _ := addNew(w, "node", true)
		sleep(lease / 3)
		require.Len(t, s.seen(), 1, "a second call of the group was made")

		close(release)
		synctest.Wait()

		require.Equal(t, 1, most)
		require.Len(t, s.of(second), 1, "what became due meanwhile follows at once")
		require.Len(t, s.of(first), 2, "a lease that was in flight at the tick is renewed again")
		require.True(t, first.Deadline().Equal(Deadline(time.Now(), lease)))
	})
}

func TestLineOfAHungGroupDoesNotGrow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &store{answer: func(_ context.Context, c call) ([]Outcome, error) {
			<-release
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew, BatchSize: 1})
		for range 100 {
			addNew(w, "node", true)
			sleep(lease / 3)
		}
		w.mu.Lock()
		waiting := len(w.rounds["node"].line)
		w.mu.Unlock()
		require.LessOrEqual(t, waiting, 4, "batches of lost leases pile up")

		close(release)
		sleep(2 * lease)
		require.NotEmpty(t, s.seen())
	})
}

func TestNewLeasesDoNotPutTheTickOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		added := time.Now()
		l, _ := addNew(w, "node", true)
		for range 20 {
			sleep(lease / 20)
			addNew(w, "node", true)
		}
		calls := s.of(l)
		require.NotEmpty(t, calls)
		require.LessOrEqual(t, calls[0].at.Sub(added), lease/3)
	})
}

func TestTickForgetsAFailingGroupThatHasNothingLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{answer: func(_ context.Context, c call) ([]Outcome, error) {
			if c.group == "failing" {
				return nil, errNode
			}
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew})
		l, _ := addNew(w, "failing", true)
		addNew(w, "node", true)
		sleep(lease / 3)
		w.mu.Lock()
		next := epoch.Add(w.nextTick)
		w.mu.Unlock()
		sleep(time.Until(next) - time.Nanosecond)
		require.Contains(t, w.rounds, "failing")
		require.True(t, w.Remove(l))
		sleep(time.Nanosecond)
		require.Empty(t, w.rounds)
	})
}

func TestCallsOfDifferentTicksDoNotStarveEachOther(t *testing.T) {
	r := &round{}
	for _, due := range []time.Duration{10, 10, 30, 12, 30, 11} {
		r.add(&batch{due: due, failures: len(r.line)})
	}
	var dues []time.Duration
	var order []int
	for len(r.line) > 0 {
		b := r.shift()
		dues, order = append(dues, b.due), append(order, b.failures)
	}
	require.Equal(t, []time.Duration{10, 10, 11, 12, 30, 30}, dues)
	require.Equal(t, []int{0, 1, 5, 3, 2, 4}, order, "equally due batches keep their order")
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for range 1000 {
		for failures, milliseconds := range []int64{100, 200, 400, 800, 1000, 1000} {
			longest := time.Duration(milliseconds) * time.Millisecond
			pause := backoff(lease, failures)
			require.LessOrEqual(t, pause, longest)
			require.GreaterOrEqual(t, pause, longest/2)
		}
		require.LessOrEqual(t, backoff(lease, 1<<40), time.Second)
		require.LessOrEqual(t, backoff(10*time.Millisecond, 9), 5*time.Millisecond)
		require.Greater(t, backoff(10*time.Millisecond, 0), 2*time.Millisecond)
	}
}
