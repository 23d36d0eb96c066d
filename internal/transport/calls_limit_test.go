package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// rueidis's queue has room for 1024 commands. A caller that sends its command itself would be
// blocked by a full one.
func TestWorkersLeaveRoomInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		c := NewCalls(group, time.Second, false)
		var sent, notSent atomic.Int64
		hangs := make(chan struct{})
		for range 2 * mostOfWorkers {
			go func() {
				b := wait.NewBudget(t.Context(), nil, time.Second)
				defer b.Stop()
				_, state, _ := detach(c, b, func(context.Context) (int, error) {
					sent.Add(1)
					<-hangs
					return 0, nil
				}, func(_ int, err error) {
					if errors.Is(err, ErrNotSent) {
						notSent.Add(1)
					}
				})
				assert.Equal(t, Detached, state)
			}()
		}
		synctest.Wait()
		require.EqualValues(t, mostOfWorkers, sent.Load())
		time.Sleep(2 * time.Second)
		close(hangs)
		group.Wait()
		// Those whose callers have left before are not sent: nobody wants what they would acquire.
		require.EqualValues(t, mostOfWorkers, sent.Load())
		require.EqualValues(t, mostOfWorkers, notSent.Load())
	})
}

// A cluster node that hangs must not hold up commands to other nodes.
func TestWorkersOfAClusterAreNotBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		c := NewCalls(group, time.Second, true)
		hangs := make(chan struct{})
		for range 2 * mostOfWorkers {
			go func() {
				_, state, _ := detach(c, unlimited(t), func(context.Context) (int, error) {
					<-hangs
					return 0, nil
				}, nil)
				assert.Equal(t, Executed, state)
			}()
		}
		synctest.Wait()
		require.Len(t, c.slots, 2*mostOfWorkers)
		close(hangs)
		group.Wait()
	})
}
