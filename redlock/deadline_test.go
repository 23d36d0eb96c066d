package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Servers may begin to count as soon as they are asked, however late their replies.
func TestDeadlineIsTheLeaseLessTheDriftFromWhenTheNodesWereAsked(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Second} {
		inBubble(t, atOnce, func(t *testing.T, b *bubble) {
			for i, n := range b.nodes {
				n.delay("quorum_acquire.lua", time.Duration(i)*500*time.Millisecond)
			}
			hold := take(t, b.lock, rlock.Lease(lease))
			require.Equal(t, time.Second, time.Since(b.start), "the third reply decides")
			deadline := b.start.Add(lease - lease/100 - 2*time.Millisecond)
			require.True(t, hold.Deadline().Equal(deadline))
			time.Sleep(1500 * time.Millisecond) // the last replies change nothing
			require.True(t, hold.Deadline().Equal(deadline))
			<-hold.Done()
			require.True(t, time.Now().Equal(deadline))
		})
	}
}

// Each watchdog renews its node at its own time. The hold lasts until so many of them have ended
// that the others are no quorum, and ends at that instant.
func TestHoldEndsExactlyWhenTheQuorumthLatestPartDoes(t *testing.T) {
	t.Parallel()
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		for range 8 {
			hold := take(t, b.lock, rlock.Watchdog)
			time.Sleep(time.Minute)
			var deadlines []time.Time
			for _, n := range b.nodes {
				n.server.Pause()
				renewed := n.called("renew.lua")
				deadlines = append(deadlines,
					watchdog.Deadline(b.start.Add(renewed[len(renewed)-1]), 30*time.Second))
			}
			slices.SortFunc(deadlines, time.Time.Compare)
			require.True(t, hold.Deadline().Equal(deadlines[2]))

			<-hold.Context().Done()
			require.True(t, time.Now().Equal(deadlines[2]), "%v after the deadline",
				time.Since(deadlines[2]))
			require.False(t, hold.Valid())
			require.True(t, hold.Deadline().Equal(deadlines[2]), "the deadline does not change")
			require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrLost)
			require.ErrorIs(t, hold.Err(), watchdog.ErrExpired)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			require.True(t, time.Now().Equal(deadlines[2]), "a lost lock is not waited for")
			for _, n := range b.nodes {
				n.server.Resume()
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestHoldLastsAsLongAsAQuorumIsRenewed(t *testing.T) {
	t.Parallel()
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Watchdog)
		b.nodes[1].server.Pause()
		b.nodes[3].reply("renew.lua",
			func([]string) any { return errors.New("LOADING the dataset") })
		b.nodes[3].reply("quorum_acquire.lua",
			func([]string) any { return errors.New("LOADING the dataset") })
		time.Sleep(10 * time.Minute)
		require.True(t, hold.Valid())
		require.Greater(t, time.Until(hold.Deadline()), 19*time.Second)
		b.nodes[1].server.Resume()
		unlock(t, hold)
	})
}
