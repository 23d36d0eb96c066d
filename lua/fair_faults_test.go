//go:build redis

package lua_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// fairCalls has all scripts of the fair lock.
var fairCalls = map[string]func(context.Context, rueidis.Client) error{
	"acquire": func(ctx context.Context, c rueidis.Client) error {
		_, err := fair.Acquire(
			ctx,
			c,
			lua.FairRequest{Owner: me, Count: 1, Lease: lease, Waits: true, Window: fairWindow},
		)
		return err
	},
	"acquire without wait": func(ctx context.Context, c rueidis.Client) error {
		_, err := fair.Acquire(
			ctx,
			c,
			lua.FairRequest{Owner: me, Count: 1, Lease: lease, Waits: false, Window: fairWindow},
		)
		return err
	},
	"release": func(ctx context.Context, c rueidis.Client) error {
		_, err := fair.Release(ctx, c, 0, me)
		return err
	},
	"force unlock": func(ctx context.Context, c rueidis.Client) error {
		_, err := fair.ForceUnlock(ctx, c)
		return err
	},
	"inspect": func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.InspectFair(ctx, c, lock)
		return err
	},
}

func TestKeyOfAnotherTypeIsNotAFairLockOrItsQueue(t *testing.T) {
	for name, call := range fairCalls {
		for _, key := range []string{lock, fairQueue, fairScores} {
			if key == fairScores && name == "inspect" || key != lock && name == "release" {
				continue // the first does not read it, the second has its own test
			}
			t.Run(name+" "+key, func(t *testing.T) {
				s, c := start(t)
				s.Do(t, "SET", key, "a page")
				if key == fairScores {
					s.Do(t, "RPUSH", fairQueue, first)
				}
				requireError(t, call(t.Context(), c), lua.ClassPermanent, "WRONGTYPE")
				require.Equal(t, "a page", s.DoString(t, "GET", key))
				if key != lock {
					requireFree(t, s, lock)
				}
			})
		}
	}
}

func TestServerOutOfMemoryRefusesAFreeFairLock(t *testing.T) {
	s, c := start(t)
	fill(t, s)
	for _, name := range []string{"acquire", "acquire without wait"} {
		requireError(t, fairCalls[name](t.Context(), c), lua.ClassPermanent, "OOM")
	}
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestServerOutOfMemoryHandsAFairLockOver(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	fill(t, s)
	require.Equal(t, lua.Released{Held: true}, leave(t, c, other))
	requireFree(t, s, lock)
	sub.requireBytes(t, array("message", fairChannel+first, "0"))
	_, err := fair.Acquire(
		t.Context(),
		c,
		lua.FairRequest{Owner: first, Count: 1, Lease: lease, Waits: true, Window: fairWindow},
	)
	requireError(t, err, lua.ClassPermanent, "OOM")
	requireQueue(t, s, first, second)
}

func TestServerOutOfMemoryTellsTheHeadOfAFreeFairLock(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	s.Do(t, "DEL", lock)
	fill(t, s)
	_, err := fair.ForceUnlock(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, first, askOnce(t, c, me).Owner)
	for range 2 {
		sub.requireBytes(t, array("message", fairChannel+first, "0"))
	}
	requireQueue(t, s, first, second)
}

func TestServerOutOfMemoryLetsWaitersLeave(t *testing.T) {
	s, c := queued(t, first, second, third)
	before := score(t, s, third)
	fill(t, s)
	leave(t, c, second)
	requireQueue(t, s, first, third)
	require.Equal(t, before-fairWindow.Milliseconds(), score(t, s, third))
	out, err := fair.ForceUnlock(t.Context(), c)
	require.NoError(t, err)
	require.True(t, out.Held)
	leave(t, c, first)
	requireQueue(t, s, third)
}

func TestServerOutOfMemoryStillSaysWhoHoldsAFairLock(t *testing.T) {
	s, c := queued(t, first, second)
	fill(t, s)
	for _, owner := range []string{first, second} {
		require.Equal(t, other, ask(t, c, owner).Owner)
	}
	requireQueue(t, s, first, second)
	require.Equal(t, other, askOnce(t, c, me).Owner)
}

func TestFairReleaseSucceedsWithoutPermissionForTheChannel(t *testing.T) {
	for name, rule := range map[string]string{"channel": "resetchannels", "command": "-publish"} {
		t.Run(name, func(t *testing.T) {
			s, c := startAs(t, rule)
			hold(t, s, lock, other, "1", lease)
			for _, owner := range []string{first, second} {
				ask(t, c, owner)
			}
			out := leave(t, c, other)
			require.True(t, out.Held)
			require.Contains(t, out.Refusal, "NOPERM")
			requireFree(t, s, lock)
			requireTurn(t, s, first, 10*time.Second) // whether it listens is unknown

			require.Contains(t, leave(t, c, first).Refusal, "NOPERM")
			requireQueue(t, s, second)
			s.Do(t, "HSET", lock, other, "1")
			out, err := fair.ForceUnlock(t.Context(), c)
			require.NoError(t, err)
			require.Contains(t, out.Refusal, "NOPERM")
			require.Nil(t, ask(t, c, second))
		})
	}
}

func TestFairLockThatMayNotExpireIsNotTaken(t *testing.T) {
	s, c := startAs(t, "-pexpire")
	s.Do(t, "RPUSH", fairQueue, me)
	s.Do(t, "ZADD", fairScores, strconv.FormatInt(serverTime(t, s)+lease.Milliseconds(), 10), me)
	requireError(t, fairCalls["acquire"](t.Context(), c), lua.ClassPermanent, "NOPERM")
	requireFree(t, s, lock)
	requireQueue(t, s, me)
}
