package transport

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// hanging begins commands of a kind that get no reply until it is closed.
func hanging(t *testing.T, c *Calls, kind Kind, n int, budget time.Duration) (
	sent *atomic.Int64, states chan State, replies chan struct{},
) {
	t.Helper()
	sent, states, replies = new(atomic.Int64), make(chan State, n), make(chan struct{})
	for range n {
		go func() {
			b := wait.NewBudget(t.Context(), nil, budget)
			defer b.Stop()
			_, state, err := Detach(c, kind, b, 0, func(int, context.Context) (int, error) {
				sent.Add(1)
				<-replies
				return 0, nil
			}, func(int, int, error) {})
			if state == Refused {
				assert.ErrorIs(t, err, ErrNotSent)
			}
			states <- state
		}()
	}
	synctest.Wait()
	return sent, states, replies
}

// rueidis's queue has room for 1024 commands. A caller that sends its command itself would be
// blocked by a full one. What is not sent in time never is: nobody wants what it would acquire.
func TestCommandsOfEachKindAreBounded(t *testing.T) {
	for kind, most := range map[Kind]int{
		Acquire: mostAcquiring, Renew: mostRenewing, Keep: mostKeeping, Apart: mostApart,
	} {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			c := NewCalls(group, time.Second, false)
			sent, states, replies := hanging(t, c, kind, 2*most, time.Second)
			require.EqualValues(t, most, sent.Load())
			count := map[State]int{}
			for range 2 * most {
				count[<-states]++
			}
			close(replies)
			group.Wait()
			require.Equal(t, map[State]int{Detached: most, Refused: most}, count)
			require.EqualValues(t, most, sent.Load())
		})
	}
}

// Acquisitions that wait for replicas, for example, must not cost a lock that is held. Nor must
// releases on a connection that gives no reply.
func TestOneKindOfCommandsDoesNotDelayTheOthers(t *testing.T) {
	for _, kind := range []Kind{Renew, Keep, undo} {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			defer group.Wait()
			c := NewCalls(group, time.Second, false)
			_, _, replies := hanging(t, c, Acquire, 2*mostAcquiring, wait.Unlimited)
			defer close(replies)
			_, _, apart := hanging(t, c, Apart, 2*mostApart, wait.Unlimited)
			defer close(apart)
			if kind == Renew {
				_, _, releases := hanging(t, c, Release, 2*mostKeeping, wait.Unlimited)
				defer close(releases)
			}
			if kind == undo {
				_, err := Patiently(c, func(context.Context) (int, error) { return 0, nil })
				require.NoError(t, err)
			} else {
				_, _, err := Do(c, kind, unlimited(t),
					func(context.Context) (int, error) { return 0, nil }, nil)
				require.NoError(t, err)
			}
		})
	}
}

// A caller that finds rueidis's queue full is blocked, whatever its wait. By default it has 1024
// places, some of which the application and rueidis itself need.
func TestCommandsOfAllKindsFitIntoTheQueueOfRueidis(t *testing.T) {
	all := mostUnderway + mostAcquiring + mostRenewing + mostKeeping + mostUndoing
	require.Less(t, all, 1000)
}
