package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/watchdog"
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

// A part is lost after its node has replied to Extend, and another node has not replied at all. The
// node that is left is no quorum, so Extend must ask again.
func TestExtendDoesNotCountAPartThatWasLostSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelLock()
		for i, delay := range []time.Duration{0, 600 * time.Millisecond, 700 * time.Millisecond} {
			n := laterNode{m.nodes[i], make(chan time.Duration, 1)}
			n.delays <- delay
			close(n.delays) // no delay from then on
			m.lock.nodes[i] = n
		}
		m.nodes[2].answers = []answer{yes, lostBefore}
		hold, err := m.lock.TryLock(m.owner, rlock.NoWait, time.Hour)
		require.NoError(t, err)
		m.holds = append(m.holds, hold)
		synctest.Wait()
		extended := make(chan error, 1)
		go func() { extended <- hold.Extend(m.owner, 10*time.Hour) }()
		synctest.Wait()
		m.nodes[0].lose(watchdog.ErrGone)
		require.NoError(t, <-extended)
		require.Greater(t, time.Until(hold.Deadline()), 9*time.Hour)
		m.unlock()
	})
}
