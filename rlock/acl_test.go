package rlock_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// asUser has a client connect as the user that restrict makes.
func asUser(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }

// restrict makes a user that may do everything except what the ACL rules take away.
func restrict(t testing.TB, s *redistest.Server, rules ...string) {
	t.Helper()
	s.Do(t, append([]string{"ACL", "SETUSER", "app", "reset", "on", ">secret", "allkeys", "allchannels", "+@all"}, rules...)...)
}

func TestReleaseThatMayNotBeAnnouncedSucceedsAndIsReportedOnce(t *testing.T) {
	for name, rules := range map[string][]string{
		"no PUBLISH": {"-publish"},
		"no channel": {"resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s, rules...)
			var log logtest.Lines
			c := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser)
			for _, name := range []string{"a", "b", "a"} {
				unlock(t, take(t, c.NewLock(name), rlock.Watchdog))
			}
			hold := take(t, c.NewLock("a"), rlock.Watchdog)
			held, err := c.NewLock("a").ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)

			require.Len(t, log.With("refuses to announce"), 1)
			require.Contains(t, log.With("refuses to announce")[0], "NOPERM")
			require.Contains(t, log.With("refuses to announce")[0], channelOf("a"))
			require.Zero(t, s.DoInt(t, "DBSIZE"))
		})
	}
}

func TestWaiterGetsALockWhoseReleaseMayNotBeAnnounced(t *testing.T) {
	for name, c := range map[string]struct{ lease, after, within time.Duration }{
		"when its lease would have ended":    {500 * time.Millisecond, 0, 3 * time.Second},
		"after 5 s when its lease is longer": {time.Minute, time.Second, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s, "-publish")
			hold := take(t, newClient(t, s, rlock.Options{}, asUser).NewLock("job"), c.lease)
			waiter := lockInBackground(t.Context(), newClient(t, s, rlock.Options{}).NewLock("job"), time.Second)
			eventually(t, func() bool { return calls(s, "hexists") >= 2 }, "the waiter has not looked again after it subscribed")
			start := time.Now()
			unlock(t, hold)
			o := result(t, waiter)
			require.NoError(t, o.err)
			require.Greater(t, o.at.Sub(start), c.after, "it was woken")
			require.Less(t, o.at.Sub(start), c.within)
			unlock(t, o.hold)
		})
	}
}

func TestWaiterThatMayNotSubscribeLooksByItself(t *testing.T) {
	for name, rules := range map[string][]string{
		"no SUBSCRIBE": {"-subscribe"},
		"no channel":   {"resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s, rules...)
			var log logtest.Lines
			take(t, newClient(t, s, rlock.Options{}).NewLock("job"), 700*time.Millisecond) // and never released
			lock := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser).NewLock("job")

			_, err := lock.TryLock(t.Context(), 100*time.Millisecond, time.Second)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			waiter := lockInBackground(t.Context(), lock, time.Second)
			eventually(t, func() bool { return len(log.With("refuses the channel")) == 1 }, "the refusal was not logged")
			s.ResetStats(t)
			unlock(t, acquired(t, waiter))
			require.Less(t, s.CommandStats(t)["evalsha"], 6, "the waiter polls")
		})
	}
}

func TestUserThatMayNotExpireKeysLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "-pexpire")
	requireRefusedAtOnce(t, newClient(t, s, rlock.Options{}, asUser).NewLock("job"), "NOPERM")
	require.Zero(t, s.DoInt(t, "EXISTS", "job"))
}

func TestUserWithoutTheKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "resetkeys", "~order:*")
	c := newClient(t, s, rlock.Options{}, asUser)
	requireRefusedAtOnce(t, c.NewLock("invoice:1"), "NOPERM")
	unlock(t, take(t, c.NewLock("order:1"), time.Second))
}

// The commands are those that the README lists under "Permissions".
func TestListedPermissionsAreEnough(t *testing.T) {
	everywhere, onClusters := listedPermissions(t)
	t.Run("single node", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		permit(t, s, everywhere)
		requirePermitted(t, func() rueidis.Client { return s.Client(t, asUser) },
			func(lock string) { awaitListeners(t, s, lock, 1) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartCluster(t, 3)
		for _, node := range c.Nodes {
			permit(t, node, append(everywhere, onClusters...))
		}
		requirePermitted(t, func() rueidis.Client { return c.Client(t, asUser) }, func(lock string) {
			eventually(t, func() bool { return listening(nodeOf(t, c, lock), "SHARDNUMSUB", lock) == 1 }, "nobody listens")
		})
	})
}

// permit makes a user that may do nothing but execute these commands on locks.
func permit(t testing.TB, s *redistest.Server, commands []string) {
	t.Helper()
	rules := []string{"ACL", "SETUSER", "app", "reset", "on", ">secret", "~order:*", "&redisson_lock__channel:*"}
	s.Do(t, append(rules, commands...)...)
}

// listedPermissions reads the commands in the README: those that every server has to permit, and the others.
func listedPermissions(t testing.TB) (everywhere, onClusters []string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "### Permissions\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n#")
	first, rest, found := strings.Cut(section, "on a cluster")
	require.True(t, found)
	command := regexp.MustCompile(`\+[a-z]+`)
	everywhere, onClusters = command.FindAllString(first, -1), command.FindAllString(rest, -1)
	require.Contains(t, everywhere, "+evalsha")
	require.Contains(t, onClusters, "+ssubscribe")
	return slices.Clip(everywhere), onClusters
}

// requirePermitted does everything that there is to do with a lock.
func requirePermitted(t *testing.T, connect func() rueidis.Client, awaitListener func(lock string)) {
	t.Helper()
	var log logtest.Lines
	c := newClientOn(t, connect(), rlock.Options{WatchdogLease: 200 * time.Millisecond, Logger: log.Logger()})
	lock := c.NewLock("order:1")
	hold := take(t, lock, rlock.Watchdog)
	nested := takeWith(hold.Context(), t, lock, rlock.Watchdog)
	waiter := lockInBackground(t.Context(), lock, time.Minute)
	awaitListener("order:1")
	require.Never(t, func() bool { return !hold.Valid() }, 500*time.Millisecond, 20*time.Millisecond, "not renewed")
	info, err := lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, hold.Owner(), info.Owner)
	unlock(t, nested)
	unlock(t, hold)
	acquired(t, waiter)
	_, err = lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.Empty(t, log.With("NOPERM"))
}
