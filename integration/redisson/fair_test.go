//go:build interop

package redisson_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func mixedFairQueueIsServedInOrder(t *testing.T, s *site) { queueIsServedInOrder(t, s, fair) }

// queueIsServedInOrder has waiters of both sides, and of the given kinds in turn, wait for a lock.
func queueIsServedInOrder(t *testing.T, s *site, kinds ...string) {
	t.Helper()
	onBoth(t, func(t *testing.T, first, second side) {
		l := both(kinds[0]).hold
		for round := range 2 {
			holder := second.newActor(t, s)
			acquire(t, holder, l, longLease)
			var want []string
			var waiting []<-chan outcome
			served := make(chan string, 5)
			for i, of := range []side{first, second, first, second, second} {
				a, who := of.newActor(t, s), fmt.Sprint(of.name, " ", i)
				l := target{kinds[i%len(kinds)], l.names}
				want = append(want, who)
				waiting = append(waiting, inBackground(func() error {
					if err := a.lock(l, longLease); err != nil {
						return err
					}
					served <- who // one at a time: the lock excludes the others
					return a.unlock(l)
				}))
				s.waitForWaiters(t, l, i+1)
			}
			refused(t, first.newActor(t, s), l)
			refused(t, second.newActor(t, s), l)
			unlock(t, holder, l)
			for _, w := range waiting {
				acquired(t, w)
			}
			close(served)
			var got []string
			for who := range served {
				got = append(got, who)
			}
			require.Equal(t, want, got, "round %d", round)
			s.requireFree(t, l)
		}
	})
}
