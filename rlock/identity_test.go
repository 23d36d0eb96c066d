package rlock_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// identityOf returns the key that says who a client is.
func identityOf(c *rlock.Client) string { return "holdfast_client:{" + c.ID() + "}" }

// waitForIdentity waits until a server knows who a client is.
func waitForIdentity(t testing.TB, s *redistest.Server, c *rlock.Client) {
	t.Helper()
	eventually(t, func() bool { return exists(s, identityOf(c)) }, "nobody knows who it is")
}

func TestRedisKnowsWhoAClientIsUntilItCloses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{Label: "nightly"})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	waitForIdentity(t, s, c)
	fields := s.DoMap(t, "HGETALL", identityOf(c))
	started, err := strconv.ParseInt(fields["start"], 10, 64)
	require.NoError(t, err)
	require.WithinRange(t, time.UnixMilli(started), time.Now().Add(-time.Hour), time.Now())
	delete(fields, "start")
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"program": filepath.Base(os.Args[0]), "host": host,
		"pid": strconv.Itoa(os.Getpid()), "label": "nightly"}, fields)
	require.InDelta(t, 90_000, s.DoInt(t, "PTTL", identityOf(c)), 30_000)
	unlock(t, hold)
	require.True(t, exists(s, identityOf(c)))
	closeClient(t, c) // which does not wait for long until the server has forgotten it
	eventually(t, func() bool { return absent(s, identityOf(c)) }, "it is still known")
}

func TestIdentityIsRefreshedWithEachThirdOfTheLeaseWhileTheClientIsUsed(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{WatchdogLease: 3 * time.Second}, func(t *testing.T, b *bubble) {
		told := func() (at []float64) {
			time.Sleep(50 * time.Millisecond) // it may wait for a moment without commands
			synctest.Wait()
			for _, since := range b.called("identify.lua") {
				at = append(at, math.Round(since.Seconds()))
			}
			return at
		}
		holds := b.takeAll(t, "a", "b", "c", "d")
		require.Equal(t, []float64{0}, told(), "once, however many locks")
		time.Sleep(3400 * time.Millisecond)
		require.Equal(t, []float64{0, 1, 2, 3}, told())
		for _, hold := range holds {
			unlock(t, hold)
		}
		time.Sleep(time.Hour)
		require.Len(t, told(), 4, "an idle client is silent")
		unlock(t, take(t, b.lock, rlock.Watchdog))
		unlock(t, take(t, b.lock, rlock.Watchdog))
		require.Len(t, told(), 5, "it is told again at the next use")

		b.reply("acquire.lua", heldFor(30_000))
		time.Sleep(time.Minute)
		_, err := b.lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Len(t, told(), 5, "what has nothing and waits for nothing is nobody")
		_, err = b.lock.TryLock(t.Context(), 1500*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Len(t, told(), 7, "a client that waits is in use")
	})
}

func TestAnonymousClientIsUnknown(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{Anonymous: true}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Watchdog)
		time.Sleep(time.Minute)
		unlock(t, hold)
		require.Empty(t, b.called("identify.lua"))
	})
}

func TestServerThatDoesNotTakeAnIdentityIsAskedAgainSoonUnlessTheACLForbidsIt(t *testing.T) {
	t.Parallel()
	for reply, calls := range map[string]int{
		"LOADING Redis is loading the dataset in memory":                                  4,
		"OOM command not allowed when used memory > 'maxmemory'.":                         4,
		"NOPERM this user has no permissions to access one of the keys used as arguments": 1,
	} {
		var log logtest.Lines
		options := rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()}
		inBubble(t, options, func(t *testing.T, b *bubble) {
			deleted := make(chan []string, 1)
			b.server.Handle("DEL", func(args []string) any { deleted <- args; return 0 })
			b.reply("identify.lua", func([]string) any { return errors.New(reply) })
			hold := take(t, b.lock, rlock.Watchdog)
			time.Sleep(3500 * time.Millisecond)
			require.Len(t, b.called("identify.lua"), calls, reply)
			if calls == 1 {
				time.Sleep(time.Minute)
				require.Len(t, b.called("identify.lua"), 2, "the user may have got the permission")
			}
			unlock(t, hold)
			closeClient(t, b.client)
			require.Empty(t, deleted, "there is nothing to delete")
			require.Empty(t, log.With(""))
		})
	}
}

// Others want to know whose lock it is that stays held after its client has ended.
func TestClosedClientIsKnownWhileALeftLockRemains(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, left := range []bool{true, false} {
		c := newClient(t, s, rlock.Options{})
		hold := take(t, rlock.AtLeast(c.NewLock(fmt.Sprint("order ", left)), time.Hour), math.MaxInt64-1)
		waitForIdentity(t, s, c)
		if left {
			hold.Leave()
		} else {
			unlock(t, hold)
		}
		closeClient(t, c)
		require.True(t, exists(s, identityOf(c)))
	}
}

func TestClientThatClosesAtOnceIsKnownWhileALeftLockRemains(t *testing.T) {
	t.Parallel()
	for range 10 { // nearly always, Close begins before the goroutine that says who it is
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			take(t, b.lock, longLease).Leave()
			closeClient(t, b.client)
			require.NotEmpty(t, b.called("identify.lua"))
		})
	}
}

func TestClosedClientIsForgottenOnceTheLeaseOfALeftLockIsOver(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		deleted := make(chan []string, 1)
		b.server.Handle("DEL", func(args []string) any { deleted <- args; return 1 })
		hold := take(t, b.lock, rlock.Lease(2*time.Second))
		time.Sleep(time.Second)
		require.NotEmpty(t, b.called("identify.lua"), "it does not say who it is")
		hold.Leave()
		time.Sleep(8 * time.Second) // the lease, and a CommandTimeout
		closeClient(t, b.client)
		require.Len(t, deleted, 1)
	})
}
