package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestQuorumErrorSaysWhetherOthersHoldTheLockOrTooFewNodesReply(t *testing.T) {
	held, closed := &rlock.HeldError{Owner: "somebody:0"}, rlock.ErrClosed
	for _, c := range []struct {
		nodes    []error // nil if the node has granted the lock
		held     bool    // by others; else there is no quorum
		isClosed bool
	}{
		{[]error{held, held, held}, true, false},
		{[]error{held, held, closed}, true, false},
		{[]error{held, nil, closed}, true, false},
		{[]error{held, closed, closed}, false, true},
		{[]error{nil, closed, closed}, false, true},
		{[]error{nil, redlock.ErrNoReply, redlock.ErrNoReply}, false, false},
		{[]error{held, redlock.ErrNoReply, redlock.ErrNoReply}, false, false},
		{[]error{held, redlock.ErrNoReply, closed}, false, false},
		// Its nodes were not asked, because a waiter of this process was queued before it.
		{nil, true, false},
	} {
		e := &redlock.QuorumError{Lock: name, Want: 2}
		for i, err := range c.nodes {
			if err == nil {
				e.Granted++
			} else {
				e.Nodes = append(e.Nodes, redlock.NodeError{Server: called(i), Err: err})
			}
		}
		require.Equal(t, c.held, errors.Is(e, rlock.ErrNotAcquired), "%v", e)
		require.Equal(t, !c.held, errors.Is(e, redlock.ErrNoQuorum), "%v", e)
		require.Equal(t, c.isClosed, errors.Is(e, closed), "%v", e)
	}
}

func TestErrorSaysOnceWhatIsWrongWithSeveralNodes(t *testing.T) {
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		for i, n := range b.nodes[:3] {
			n.reply("quorum_acquire.lua", func(args []string) any {
				time.Sleep(time.Millisecond) // after the others
				if i == 0 {
					return heldBy("somebody:0", 600_000)(args)
				}
				return errors.New("READONLY a replica")
			})
		}
		_, err := b.lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired,
			"but for somebody on one node there would be a quorum")
		require.Regexp(t, `order": not acquired: 2 of 5 nodes granted the lock, 3 are needed; `+
			`a: held by somebody:0 for another 10m0s; b, c: [^;]*READONLY `, err.Error())
		require.Equal(t, 1, strings.Count(err.Error(), "READONLY"))
		require.Len(t, quorumError(t, err).Nodes, 3)
	})
}

// A minority that refuses for good does not end a wait, and a majority ends it at once.
func TestMajorityThatRefusesForGoodEndsAWaitAtOnceAndAMinorityDoesNot(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		refuse := func([]string) any { return errors.New("NOPERM no permission") }
		for i, n := range b.nodes {
			n.reply("quorum_acquire.lua", heldBy("x:1", 600_000))
			if i < 2 {
				n.reply("quorum_acquire.lua", refuse)
			}
		}
		for _, wait := range []time.Duration{rlock.NoWait, time.Second} {
			_, err := b.lock.TryLock(t.Context(), wait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired, "it is acquired once it is unlocked")
			require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		}
		waiter := lockInBackground(t.Context(), b.lock, longLease)
		time.Sleep(time.Second)
		require.Empty(t, waiter)
		b.nodes[2].reply("quorum_acquire.lua", refuse)
		for _, n := range b.nodes[3:] {
			n.reply("quorum_acquire.lua", granting()["quorum_acquire.lua"])
		}
		start := time.Now()
		err := result(t, waiter).Err // it asks by itself every 5 s
		require.LessOrEqual(t, time.Since(start), 5*time.Second)
		start = time.Now()
		_, another := b.lock.Lock(t.Context(), longLease)
		require.Zero(t, time.Since(start))
		for _, err := range []error{err, another} {
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			var refusal *rlock.ServerError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, "NOPERM", refusal.Code)
			require.ErrorContains(t, err, refusal.Advice)
		}
	})
}

func TestRoundThatTheEndOfTheWaitCutsShortDoesNotHideWhatWasKnownBefore(t *testing.T) {
	t.Parallel()
	const lease, wait = 2 * time.Second, 3 * time.Second
	o := redlock.Options{FsyncAlways: true, NodeTimeout: time.Minute}
	inBubble(t, o, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", heldBy("somebody", int(lease.Milliseconds())))
			time.AfterFunc(lease/2, n.server.Pause)
		}
		_, err := b.lock.TryLock(t.Context(), wait, longLease)
		require.Equal(t, wait, time.Since(b.start))
		asked := b.rounds()
		require.Less(t, asked[len(asked)-1], lease/2, "no node executes a request of the last round")
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "held by somebody")
	})
}

// A waiter that becomes the head with a moment left asks nodes that could not have replied in that
// time.
func TestWaitThatEndsBeforeNodesCanReplyIsNotAcquired(t *testing.T) {
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.delay("quorum_acquire.lua", 100*time.Millisecond)
		}
		head := inBackground(func() (*rlock.Hold, error) {
			return b.lock.TryLock(t.Context(), 50*time.Millisecond, longLease)
		})
		synctest.Wait()
		_, err := b.lock.TryLock(t.Context(), 55*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.Len(t, quorumError(t, err).Nodes, 5)
		require.ErrorIs(t, result(t, head).Err, redlock.ErrNoQuorum,
			"they had time, and have not answered")
	})
}
