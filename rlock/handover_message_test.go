package rlock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// These tests are about locks that were handed over when the reply or the message is lost, or late.

// The release is executed, and the successor is told to ask.
func TestLostReplyToAReleaseWithASuccessorMakesItTheOnlyHolder(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		for _, lost := range []int{1, 2} {
			s := redistest.Start(t)
			c, p := proxied(t, s, rlock.Options{})
			k.warm(t, c, k.name)
			first := take(t, k.lock(c, k.name), longLease)
			successor := k.parked(t, s, k.lock(c, k.name))
			cut := p.CutReply(script(t, k.release), lost)
			start := time.Now()
			require.NoError(t, first.Unlock(t.Context()))
			hold := acquired(t, successor)
			require.Less(t, time.Since(start), 2*time.Second)
			require.Equal(t, lost, cut.Done())
			require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			require.True(t, hold.Valid())
			require.NoError(t, hold.Unlock(t.Context()))
			waitUntilFree(t, s, k.name)
		}
	})
}

// The release is not executed at all.
func TestReleaseWithASuccessorThatIsRefusedAtFirstFreesTheLockInTheEnd(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		first := take(t, k.lock(c, k.name), longLease)
		successor := k.parked(t, s, k.lock(c, k.name))
		refused := p.Reply(script(t, k.release), 2,
			"LOADING Redis is loading the dataset in memory")
		start := time.Now()
		unlock(t, first)
		hold := acquired(t, successor)
		require.Less(t, time.Since(start), 2*time.Second)
		require.Equal(t, 2, refused.Done())
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

func TestWaiterWhoseGrantIsLostWithItsConnectionFindsItsLock(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		p.HoldMessages()
		unlock(t, first)
		require.Equal(t, c.ID(), holderOf(t, s, k.name))
		given := s.DoMap(t, "HGETALL", k.name)
		require.Positive(t, p.Reset(), "what it held back is lost")
		start := time.Now()
		p.Pass()
		hold := acquired(t, waiter)
		require.Less(t, time.Since(start), 2*time.Second,
			"it looked when it would have anyway, instead of after it listened again")
		require.Equal(t, k.hash(hold.Owner(), 1), given, "it is the same acquisition")
		if k.fenced {
			require.Equal(t, lastNumber(t, s, k.name), hold.Token())
		}
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

// For a message that is lost on a connection that stays, there is the request every 5 s.
func TestWaiterWhoseGrantIsLostAsksWithin5Seconds(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		p.DropMessages()
		unlock(t, first)
		start := time.Now()
		unlock(t, acquired(t, waiter))
		require.Less(t, time.Since(start), 8*time.Second)
	})
}

// The message grants the lock long after that is over, to a waiter that has asked again since and
// was refused. A publisher on one channel of this client must not make it release locks of others.
func TestGrantToAnotherOrOnTheChannelOfAnotherLockIsIgnored(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	victim := take(t, newClient(t, s, rlock.Options{}).NewLock("precious"), longLease)
	ours := take(t, c.NewLock("order"), longLease)
	client, _, _ := strings.Cut(ours.Owner(), ":")
	waiter := registersBy(t, s, 1, "order", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("order"), longLease)
	})
	s.Do(t, "HSET", "elsewhere", client+":ghost", "1")
	say := func(lock, text string) {
		s.Do(t, "PUBLISH", lua.PairedChannels(lua.Channel(lock), client)[1], text)
	}
	theirs := take(t, newClient(t, s, rlock.Options{}).NewLock("theirs"), longLease)
	second := registersBy(t, s, 1, "theirs", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("theirs"), longLease)
	})
	say("theirs", theirs.Owner()+" 1 0 0 0 theirs")
	say("order", victim.Owner()+" 1 0 0 0 precious")
	say("order", client+":ghost 1 0 0 0 elsewhere")

	// This one is accepted, and handled after the others.
	unlock(t, ours)
	unlock(t, acquired(t, waiter))
	s.Do(t, "HSET", "order", client+":ghost", "1")
	waiter = registersBy(t, s, 1, "order", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("order"), longLease)
	})
	say("order", client+":ghost 1 0 0 0 order")
	unlock(t, acquired(t, waiter))
	require.True(t, exists(s, "precious"))
	require.True(t, exists(s, "elsewhere"))
	require.Empty(t, second)
	require.Equal(t, map[string]string{theirs.Owner(): "1"}, s.DoMap(t, "HGETALL", "theirs"))
	unlock(t, theirs)
	unlock(t, acquired(t, second))
	unlock(t, victim)
}

func TestGrantThatComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		const (
			othersLease = 3 * time.Second // after which the waiter asks again
			lease       = time.Second
		)
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		other := newClient(t, s, rlock.Options{})
		first := take(t, k.lock(other, k.name), othersLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), lease)
		stale := s.DoStrings(t, "ZRANGE", waitersKey(k.name), "0", "-1", "WITHSCORES")
		p.HoldMessages()
		unlock(t, first)
		require.Equal(t, c.ID(), holderOf(t, s, k.name))
		eventually(t, func() bool { return absent(s, k.name) }, "the lease of the grant is over")
		second := take(t, k.lock(other, k.name), longLease)
		eventually(t, func() bool { return registrations(s, k.name) == 1 }, "the waiter asks again")
		anew := s.DoStrings(t, "ZRANGE", waitersKey(k.name), "0", "-1", "WITHSCORES")
		require.Equal(t, stale[0], anew[0], "the same owner")
		require.Greater(t, anew[1], stale[1], "with another ticket")
		waitForQuiet(t, s) // and has its reply
		require.Empty(t, waiter)

		sent := calls(s, "evalsha")
		p.Pass()
		s.Do(t, "PUBLISH", channelOf(k.name), "0") // comes after the other one, and makes it ask
		eventually(t, func() bool { return calls(s, "evalsha") > sent }, "it has not looked")
		require.Empty(t, waiter, "two hold the lock")
		require.True(t, second.Valid())
		require.Equal(t, k.hash(second.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, second)
		hold := acquired(t, waiter)
		if k.fenced {
			require.Greater(t, hold.Token(), second.Token())
			require.Equal(t, lastNumber(t, s, k.name), hold.Token())
		}
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

// In watchdog mode a granted lock has a short lease. The rest of it must last until the first
// renewal.
func TestGrantOfWhichHalfIsOverIsConfirmedBeforeItIsTrusted(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		for _, late := range []bool{false, true} {
			grant := 10 * time.Second // half of it outlasts any delay
			if late {
				grant = 6 * time.Second
			}
			options := rlock.Options{WatchdogLease: 10 * grant}
			s := redistest.Start(t)
			c, p := proxied(t, s, options)
			other := newClient(t, s, options)
			warm(t, c, "connected")
			first := take(t, k.lock(other, k.name), longLease)
			waiter := registers(t, s, 1, k.lock(c, k.name), rlock.Watchdog)
			waitForQuiet(t, s)
			monitor := s.Monitor(t)
			p.HoldMessages()
			unlock(t, first)
			given := s.DoMap(t, "HGETALL", k.name)
			require.LessOrEqual(t, s.DoInt(t, "PTTL", k.name), grant.Milliseconds())
			if late {
				eventually(t, func() bool {
					left, err := s.Call("PTTL", k.name)
					return err == nil && left.(int64) < 2700
				}, "more than half of it is over")
			}
			p.Pass()
			hold := acquired(t, waiter)
			require.Equal(t, k.hash(hold.Owner(), 1), given)
			asked := slices.ContainsFunc(monitor.Commands(t), func(command []string) bool {
				return command[0] == "evalsha" && command[1] == script(t, k.acquire)
			})
			require.Equal(t, late, asked)
			if late {
				require.Greater(t, s.DoInt(t, "PTTL", k.name), int64(45000),
					"now it has the whole lease")
				require.Greater(t, time.Until(hold.Deadline()), 45*time.Second)
			}
			unlock(t, hold)
		}
	})
}

// An explicit lease should be about as long as requested.
func TestGrantIsWorthNineTenthsOfAnExplicitLease(t *testing.T) {
	t.Parallel()
	const lease = 15 * time.Second // a fifth of it outlasts any delay
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), lease)
		p.HoldMessages()
		unlock(t, first)
		eventually(t, func() bool {
			left, err := s.Call("PTTL", k.name)
			return err == nil && left.(int64) < (lease*4/5).Milliseconds()
		}, "a fifth of it is over")
		p.Pass()
		hold := acquired(t, waiter)
		require.Greater(t, time.Until(hold.Deadline()), lease*4/5)
		unlock(t, hold)
	})
}

// Neither for a successor, whose lease begins when the release is executed, nor for a grant, which
// may have been on its way for long.
func TestDeadlineOfALockThatWasHandedOverIsNotLaterThanItsExpiry(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		for name, releaser := range map[string]*rlock.Client{
			"successor": c, "grant": newClient(t, s, rlock.Options{}),
		} {
			for _, lease := range []time.Duration{lease, rlock.Watchdog} {
				first := take(t, k.lock(releaser, k.name), longLease)
				waiter := lockInBackground(t.Context(), k.lock(c, k.name), lease)
				k.waitForListeners(t, s, k.name, 1)
				waitForQuiet(t, s)
				p.DelayReplies(300 * time.Millisecond) // a reply or a message
				unlock(t, first)
				hold := acquired(t, waiter)
				p.DelayReplies(0)
				left := time.Duration(s.DoInt(t, "PTTL", k.name)) * time.Millisecond
				expiry := time.Now().Add(left + time.Millisecond)
				require.False(t, hold.Deadline().After(expiry), "%s: by %v", name,
					hold.Deadline().Sub(expiry))
				require.Equal(t, c.ID(), holderOf(t, s, k.name))
				unlock(t, hold)
				waitUntilFree(t, s, k.name)
			}
		}
	})
}
