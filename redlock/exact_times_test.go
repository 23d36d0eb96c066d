package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Also the one that is asked last, after a quorum has replied.
func TestEveryNodeThatRepliesIsPartOfTheHold(t *testing.T) {
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		for range 50 {
			hold := take(t, b.lock, 10*time.Second)
			synctest.Wait()
			unlock(t, hold)
			synctest.Wait()
		}
		for _, n := range b.nodes {
			require.Len(t, n.called("quorum_acquire.lua"), 50)
			require.Len(t, n.called("release.lua"), 50)
		}
	})
}

// Servers may begin to count as soon as they are asked, however late their replies.
func TestDeadlineIsTheLeaseLessTheDriftFromWhenTheNodesWereAsked(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Second} {
		inBubble(
			t,
			redlock.Options{NodeTimeout: 3 * time.Second, FsyncAlways: true},
			func(t *testing.T, b *bubble) {
				for i, n := range b.nodes {
					n.delay("quorum_acquire.lua", time.Duration(i)*500*time.Millisecond)
				}
				hold := take(t, b.lock, lease)
				require.Equal(t, time.Second, time.Since(b.start), "the third reply decides")
				require.True(t,
					hold.Deadline().Equal(b.start.Add(lease-lease/100-2*time.Millisecond)))

				time.Sleep(1500 * time.Millisecond) // the last replies change nothing
				require.True(t, hold.Deadline().Equal(watchdog.Deadline(b.start, lease)))
				<-hold.Done()
				require.True(t, time.Now().Equal(watchdog.Deadline(b.start, lease)))
			},
		)
	}
}

func TestQuorumThatRepliesAfterTheLeaseIsNone(t *testing.T) {
	inBubble(
		t,
		redlock.Options{NodeTimeout: time.Minute, FsyncAlways: true},
		func(t *testing.T, b *bubble) {
			const lease = time.Second
			margin := lease - watchdog.Drift(lease)
			for i, n := range b.nodes {
				// the third comes just at its end
				n.delay("quorum_acquire.lua", margin-time.Duration(2-i)*time.Nanosecond)
			}
			_, err := b.lock.TryLock(t.Context(), rlock.NoWait, lease)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.ErrorContains(t, err, "granted, but the reply took longer than the lease")
		},
	)
}

func TestEachRoundCountsFromItsOwnStart(t *testing.T) {
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes[:3] {
			n.reply("quorum_acquire.lua", heldBy("another:1", 1234))
		}
		time.AfterFunc(time.Second, func() {
			for _, n := range b.nodes {
				n.reply("quorum_acquire.lua", granting()["quorum_acquire.lua"])
			}
		})
		hold, err := b.lock.TryLock(t.Context(), time.Minute, 10*time.Second)
		require.NoError(t, err)
		asked := b.rounds()
		require.True(
			t,
			hold.Deadline().
				Equal(watchdog.Deadline(b.start.Add(asked[len(asked)-1]), 10*time.Second)),
		)
		unlock(t, hold)
	})
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
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
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

func TestExtendMovesTheDeadlineOnlyWithAQuorum(t *testing.T) {
	inBubble(t, redlock.Options{FsyncAlways: true}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, 30*time.Second)
		refuse := func(args []string) any { return errors.New("LOADING the dataset") }
		first := watchdog.Deadline(b.start, 30*time.Second)
		for _, n := range b.nodes[:3] {
			n.reply("renew.lua", refuse)
		}
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, hold.Extend(ctx, time.Minute))
		require.True(t, hold.Deadline().Equal(first))
		require.NoError(t, hold.Err())

		b.nodes[0].reply("renew.lua", granting()["renew.lua"])
		again := time.Now()
		require.NoError(t, hold.Extend(t.Context(), time.Minute))
		require.True(t, hold.Deadline().Equal(watchdog.Deadline(again, time.Minute)))
		<-hold.Done()
		require.True(t, time.Now().Equal(hold.Deadline()))
		require.True(t,
			hold.Deadline().After(watchdog.Deadline(again, time.Minute).Add(-2*time.Second)))
	})
}

func TestExtendWhoseRepliesComeAfterTheDeadlineIsALoss(t *testing.T) {
	inBubble(
		t,
		redlock.Options{FsyncAlways: true, NodeTimeout: time.Second},
		func(t *testing.T, b *bubble) {
			hold := take(t, b.lock, time.Second)
			for _, n := range b.nodes {
				n.delay("renew.lua", 50*time.Millisecond)
			}
			deadline := watchdog.Deadline(b.start, time.Second)
			time.Sleep(time.Until(deadline) - 49*time.Millisecond)
			require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), rlock.ErrLost)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			require.True(t, hold.Deadline().Equal(deadline))
		},
	)
}
