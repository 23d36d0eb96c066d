package watchdog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailedBatchIsRetriedAtOnceAndDelaysNoOther(t *testing.T) {
	inBubble(t, Options{batchSize: 1}, func(t *testing.T, w *Watchdog, s *store) {
		bad, badLost := addNew(w, "node", true)
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			if c.leases[0] == bad && len(s.of(bad)) <= 3 {
				return nil, errNode
			}
			return all(c.leases), nil
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
		require.Equal(t, []failure{of, of, of}, s.failed.seen())
		require.Empty(t, badLost.seen())
	})
}

func TestFailingBatchIsRetriedUntilItsDeadline(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		s.replyWith(func(context.Context, call) ([]Outcome, error) { return nil, errNode })
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
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		s.replyWith(func(context.Context, call) ([]Outcome, error) { return nil, nil })
		_, lost := addNew(w, "node", true)
		sleep(lease / 3)
		require.NotEmpty(t, s.failed.seen())
		require.ErrorIs(t, s.failed.seen()[0].err, errNoOutcome)
		require.Empty(t, lost.seen())
	})
}

// A batch may be for two nodes, one of which does not reply. That must not cost the leases of the
// other.
func TestOnlyLeasesWithUnknownOutcomeAreRetried(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
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
		for _, of := range s.failed.seen() {
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

// A hook around the client of the store may end the goroutine of a call. That is a call without
// outcome: it is tried again soon, is reported, and takes no place for longer.
func TestLeaseIsRenewedAlthoughRenewEndsItsGoroutine(t *testing.T) {
	for name, ends := range map[string]func(n int) bool{
		"at first":        func(n int) bool { return n < 10 },
		"again and again": func(n int) bool { return n%2 == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
				s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
					if ends(len(s.seen())) {
						runtime.Goexit()
					}
					return all(c.leases), nil
				})
				_, lost := addNew(w, "node", true)
				sleep(lease / 2)
				calls := s.seen()
				require.GreaterOrEqual(t, len(calls), 2)
				require.Less(t, calls[1].at.Sub(calls[0].at), time.Second, "not tried again soon")
				require.ErrorIs(t, s.failed.seen()[0].err, errEnded)
				sleep(150 * lease)
				require.Empty(t, lost.seen())
				w.Close()
			})
		})
	}
}

func TestLeaseThatIsRejectedCostsNoOtherItsRenewalAndGoesAloneUntilItIsRenewed(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		bad, badLost := addNew(w, "node", true)
		deadline := bad.Deadline()
		all10 := []*Lease{bad}
		var lost []*losses
		for range 9 {
			l, ls := addNew(w, "node", true)
			all10, lost = append(all10, l), append(lost, ls)
		}
		reject := func(_ context.Context, c call) ([]Outcome, error) {
			if !slices.Contains(c.leases, bad) {
				return all(c.leases), nil
			}
			return slices.Repeat([]Outcome{Rejected}, len(c.leases)), errNode
		}
		s.replyWith(reject)

		w.mu.Lock()
		tick := epoch.Add(w.nextTick)
		w.mu.Unlock()
		sleep(time.Until(tick))
		calls := s.seen()
		require.Len(t, calls, 11, "one for all, and then one each")
		require.Len(t, calls[0].leases, 10)
		for _, c := range calls {
			require.Equal(t, calls[0].at, c.at, "a retry waited although its lease was not to blame")
		}
		require.Equal(t, []failure{{"node", 1, errNode}}, s.failed.seen(), "only the bad one failed")
		sleep(lease / 3) // the second tick
		for _, c := range s.seen()[11:] {
			require.Contains(t, []int{1, 9}, len(c.leases), "the rejected one spoiled a batch again")
		}
		require.Less(t, len(s.of(bad)), 12, "it is tried again too often")

		s.reply.Store(nil)
		sleep(lease / 6) // another try
		require.True(t, bad.Deadline().After(deadline))
		sleep(lease / 3)
		calls = s.seen()
		require.ElementsMatch(t, all10, calls[len(calls)-1].leases, "it still goes alone")
		require.Empty(t, badLost.seen())

		s.replyWith(reject)
		deadline = bad.Deadline()
		sleep(2 * lease)
		badLost.require(t, deadline, ErrExpired)
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
	})
}

// A third of the lease is over when the first renewal begins.
func TestLeaseIsKeptHoweverLateTheRepliesCome(t *testing.T) {
	for _, roundTrip := range []time.Duration{lease / 6, lease * 11 / 60, lease / 3, lease * 6 / 10} {
		inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
			s.replyWith(slow(roundTrip))
			l, lost := addNew(w, "node", true)
			sleep(10 * lease)
			require.Empty(t, lost.seen(), "lost with replies after %v", roundTrip)
			require.True(t, l.Deadline().After(time.Now()))
			require.LessOrEqual(t, len(s.seen()), int(2*10*lease/(lease*3/10))+1, "calls pile up")
		})
	}
}

func TestCallWithoutReplyIsRepeatedWhileItGoesOnAndTheFirstReplyCounts(t *testing.T) {
	for _, replies := range []string{"first", "second"} {
		t.Run(replies, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := make(chan struct{}), make(chan struct{})
				overdue := make(chan []*Lease, 10)
				w, s := watch(t, Options{OnOverdue: func(leases []*Lease) { overdue <- leases }})
				l, lost := addNew(w, "node", true)
				s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
					switch len(s.of(l)) {
					case 1:
						<-first
					case 2:
						<-second
					}
					return all(c.leases), nil
				})
				sleep(lease / 3)
				require.Len(t, s.of(l), 1)
				sleep(lease / 6)
				calls := s.of(l)
				require.Len(t, calls, 2)
				require.Equal(t, lease/6, calls[1].at.Sub(calls[0].at))
				require.Len(t, s.failed.seen(), 1)
				require.Equal(t, 1, s.failed.seen()[0].leases)
				require.ErrorContains(t, s.failed.seen()[0].err, "no reply")
				require.Len(t, overdue, 1)
				require.Equal(t, []*Lease{l}, <-overdue)

				if replies == "first" {
					close(first)
					synctest.Wait()
					require.True(t, l.Deadline().Equal(Deadline(calls[0].at, lease)))
					close(second)
				} else {
					close(second)
					synctest.Wait()
					require.True(t, l.Deadline().Equal(Deadline(calls[1].at, lease)))
					close(first)
				}
				synctest.Wait()
				require.True(t, l.Deadline().Equal(Deadline(calls[1].at, lease)), "moved back")
				require.Len(t, s.of(l), 2, "tried again although there was a reply")
				sleep(lease)
				require.Empty(t, lost.seen())
				w.mu.Lock()
				defer w.mu.Unlock()
				require.Empty(t, w.rounds)
			})
		})
	}
}

func TestHungStoreGetsABoundedNumberOfCallsAndGoesOnWhenItReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w, s := watch(t, Options{batchSize: 1})
		s.replyWith(func(ctx context.Context, c call) ([]Outcome, error) {
			select {
			case <-release:
				return all(c.leases), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		lost := make([]*losses, 1000)
		for i := range lost {
			_, lost[i] = addNew(w, "node", true)
		}
		sleep(lease / 3)
		require.Len(t, s.seen(), mostCalls)
		sleep(lease / 3)
		require.Len(t, s.seen(), 2*mostCalls, "more than the store can be asked at once")

		close(release)
		sleep(lease)
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
	})
}

// A lost connection makes the watchdog tick early, and on a server that rejects connections one is
// lost many times a second.
func TestLatenessIsReportedOncePerPeriodHoweverOftenRenewNowIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		w, s := watch(t, Options{OnLate: func(string, Lateness) { reports.Add(1) }})
		s.replyWith(func(ctx context.Context, _ call) ([]Outcome, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		addNew(w, "node", true)
		sleep(lease * 2 / 3) // one period until it is due, and another one until it is late
		require.Equal(t, int64(1), reports.Load())
		for range 20 {
			w.RenewNow()
			sleep(lease / 100)
		}
		require.Equal(t, int64(1), reports.Load())
	})
}

func TestPeriodThatCannotBeKeptIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type report struct {
			at    time.Time
			group string
			late  Lateness
		}
		var mu sync.Mutex
		var reports []report
		seen := func() []report {
			mu.Lock()
			defer mu.Unlock()
			return reports
		}
		w, s := watch(t, Options{batchSize: 1, OnLate: func(group string, late Lateness) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, report{time.Now(), group, late})
		}})
		s.replyWith(func(ctx context.Context, c call) ([]Outcome, error) {
			if c.group == "slow" {
				return slow(4*time.Second)(ctx, c)
			}
			return all(c.leases), nil
		})
		for range 4 * mostCalls { // four times 4 s are more than a period of 10 s
			addNew(w, "slow", true)
		}
		addNew(w, "node", true)
		deadline := Deadline(time.Now(), lease)
		sleep(lease * 21 / 30)
		require.Len(t, seen(), 1)
		r := seen()[0]
		require.Equal(t, "slow", r.group)
		require.Equal(t, 4*mostCalls, r.late.Leases)
		require.GreaterOrEqual(t, r.late.Late, mostCalls)
		require.Less(t, r.late.Late, 4*mostCalls)
		require.Equal(t, deadline.Sub(r.at), r.late.Left)
		sleep(lease / 3)
		require.Len(t, seen(), 2, "it is as slow in the next period")
	})
}
