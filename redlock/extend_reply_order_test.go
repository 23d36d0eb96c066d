package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// laterNode replies to nested locks after delays.
type laterNode struct {
	*modelNode
	delays chan time.Duration
}

func (n laterNode) Extend(as string, levels int, lease time.Duration) (bool, error) {
	time.Sleep(<-n.delays)
	return n.modelNode.Extend(as, levels, lease)
}

// The second level is confirmed by two nodes. The first node's reply to it comes after its reply to
// the third level, while that one still waits for another node.
func TestLateReplyToALevelDoesNotUncountTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelLock()
		const later, last = 600 * time.Millisecond, 700 * time.Millisecond
		for i, delays := range [][]time.Duration{{later, 0}, {0, last}, {0, 0}} {
			n := laterNode{m.nodes[i], make(chan time.Duration, len(delays))}
			for _, d := range delays {
				n.delays <- d
			}
			m.lock.nodes[i] = n
		}
		m.nodes[2].answers = []answer{yes, yes, lostBefore}
		for range 3 {
			hold, err := m.lock.TryLock(m.owner, rlock.NoWait, time.Hour)
			require.NoError(t, err)
			m.holds = append(m.holds, hold)
			synctest.Wait() // the calls take their delays in the order of the levels
		}
		for range m.holds {
			m.unlock()
		}
	})
}
