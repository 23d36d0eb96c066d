package watchdog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow replies that all leases are held after that time, unless the context of the call ends first.
func slow(roundTrip time.Duration) func(context.Context, call) ([]Outcome, error) {
	return func(ctx context.Context, c call) ([]Outcome, error) {
		select {
		case <-time.After(roundTrip):
			return all(c.leases, true), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A third of the lease is over when the first renewal begins.
func TestLeaseIsKeptHoweverLateTheRepliesCome(t *testing.T) {
	for _, roundTrip := range []time.Duration{lease / 6, lease * 11 / 60, lease / 3, lease * 6 / 10} {
		inBubble(t, func(t *testing.T) {
			s := &store{reply: slow(roundTrip)}
			w := watch(t, Options{Renew: s.renew})
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
			inBubble(t, func(t *testing.T) {
				first, second := make(chan struct{}), make(chan struct{})
				s := &store{}
				var failed failures
				overdue := make(chan []*Lease, 10)
				w := watch(t, Options{Renew: s.renew, OnFailure: failed.add,
					OnOverdue: func(leases []*Lease) { overdue <- leases }})
				l, lost := addNew(w, "node", true)
				s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
					switch len(s.of(l)) {
					case 1:
						<-first
					case 2:
						<-second
					}
					return all(c.leases, true), nil
				})
				sleep(lease / 3)
				require.Len(t, s.of(l), 1)
				sleep(lease / 6)
				calls := s.of(l)
				require.Len(t, calls, 2)
				require.Equal(t, lease/6, calls[1].at.Sub(calls[0].at))
				require.Len(t, failed.seen(), 1)
				require.Equal(t, 1, failed.seen()[0].leases)
				require.ErrorContains(t, failed.seen()[0].err, "no reply")
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
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &store{reply: func(ctx context.Context, c call) ([]Outcome, error) {
			select {
			case <-release:
				return all(c.leases, true), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		w := watch(t, Options{Renew: s.renew, BatchSize: 1})
		lost := make([]*losses, 1000)
		for i := range lost {
			_, lost[i] = addNew(w, "node", true)
		}
		sleep(lease / 3)
		require.Len(t, s.seen(), mostCalls)
		sleep(lease / 3)
		require.Len(t, s.seen(), 2*mostCalls, "more than the store can be asked at once")

		close(release)
		s.replyWith(nil)
		synctest.Wait()
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
		sleep(lease)
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
	})
}
