//go:build redis

package rlock_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
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

// Servers that cannot be reached, that refuse something, and that fail over.

func TestUnreachableServerIsAnErrorThatSaysWhatToDoWithinTheWait(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody serves its connections
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	password, plain := redistest.WithPassword("right"), redistest.WithHostNetwork()
	for name, c := range map[string]struct {
		server redistest.Option
		change func(*rueidis.ClientOption)
		advice string
	}{
		"wrong password": {password, func(o *rueidis.ClientOption) { o.Password = "wrong" },
			"the user name or the password is wrong"},
		"TLS not given": {redistest.WithTLS(), func(o *rueidis.ClientOption) { o.TLSConfig = nil },
			"rueidis.ClientOption.TLSConfig"},
		"TLS not trusted": {redistest.WithTLS(),
			func(o *rueidis.ClientOption) { o.TLSConfig = &tls.Config{} }, "server is not trusted"},
		"refused": {plain, func(o *rueidis.ClientOption) { o.InitAddress = []string{"127.0.0.1:1"} },
			"check that the server is running and that the address is correct"},
		"silent": {plain,
			func(o *rueidis.ClientOption) { o.InitAddress = []string{silent.Addr().String()} },
			"reply"}, // "no reply …", or "… did not reply …" when rueidis finds out first
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 3 * time.Second // in which a busy machine learns what is wrong
			if name == "silent" {    // and here nothing more
				limit = time.Second
			}
			option := redistest.Start(t, c.server).ClientOption()
			c.change(&option)
			option.Dialer.Timeout = 5 * time.Second // more than limit
			option.ForceSingleClient = true
			redis, err := rueidis.NewClient(option) // a client, and an error
			require.NotNil(t, redis, err)
			t.Cleanup(redis.Close)
			lock := newClientOn(t, redis, rlock.Options{CommandTimeout: limit}).NewLock("job")
			for _, wait := range []time.Duration{rlock.NoWait, limit} {
				start := time.Now()
				_, err := lock.TryLock(t.Context(), wait, rlock.Lease(time.Minute))
				require.Less(t, time.Since(start), limit+longWait/2, "%v", err) // on a busy machine
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorAs(t, err, new(*rlock.ServerError))
				require.ErrorContains(t, err, c.advice)
			}
		})
	}
}

func TestPasswordChangedWhileRunningIsRefusedUntilItIsChangedBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second, Logger: log.Logger()}, asUser)
	hold := take(t, c.NewLock("kept"), rlock.Watchdog)
	released := take(t, c.NewLock("released"), rlock.Lease(time.Minute))

	s.Do(t, "ACL", "SETUSER", "app", "resetpass", ">changed")
	s.Do(t, "CLIENT", "KILL", "USER", "app")
	eventually(t, func() bool { // the first command may have an unknown outcome
		_, err := c.NewLock("other").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
		var refusal *rlock.ServerError
		return errors.As(err, &refusal) && refusal.Code == "WRONGPASS"
	}, "not refused")
	requireRefusal(t, released.Unlock(), "WRONGPASS")
	eventually(t, func() bool { return len(log.With("leases not renewed")) > 0 },
		"the failed renewal was not logged")
	s.Do(t, "ACL", "SETUSER", "app", "resetpass", ">secret")
	requireKept(t, []*rlock.Hold{hold}, 7*time.Second, "lost, though the trouble was short")
	unlock(t, take(t, c.NewLock("other"), longLease))
	unlock(t, hold)
}

func TestServerOutOfMemoryRefusesLocksAndRenewsExtendsAndReleases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
	other := newClient(t, s, rlock.Options{})
	outer, inner := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range kinds {
		outer[k.name] = take(t, k.lock(c, k.name), rlock.Watchdog)
		inner[k.name] = takeWith(outer[k.name].Context(), t, k.lock(c, k.name), rlock.Watchdog)
	}
	awaited := take(t, c.NewLock("awaited"), longLease)
	waiter := registers(t, s, 1, other.NewLock("awaited"), longLease)
	waitForQuiet(t, s) // the waiter would be refused if it asked again
	befall(t, s, "is out of memory")
	unlock(t, awaited)
	unlock(t, acquired(t, waiter)) // handing the lock over takes no memory
	requireFree(t, s, "awaited")
	waitForRenewal(t, slices.Collect(maps.Values(outer)))
	for _, k := range kinds {
		requireRefusedAtOnce(t, k.lock(other, "another "+k.name), "OOM")
		require.NoError(t, outer[k.name].Extend(t.Context(), rlock.Lease(time.Minute)))
		unlock(t, inner[k.name])
		require.True(t, outer[k.name].Valid())
		unlock(t, outer[k.name])
		requireFree(t, s, k.name)
	}
}

// Redis refuses SUBSCRIBE when it is out of memory from the patches of May 2026 on: 6.2.22, 7.2.14,
// 7.4.9 and the newer versions. Nothing wakes a waiter then, but it still waits.
func TestServerOutOfMemoryStillLetsWaitersWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	end := befall(t, s, "is out of memory")
	waiter := lockInBackground(t.Context(), other.NewLock("order"), longLease)
	if strings.Contains(fmt.Sprint(s.Do(t, "COMMAND", "INFO", "subscribe")), "denyoom") {
		refused := regexp.MustCompile(`cmdstat_subscribe:.*rejected_calls=[1-9]`)
		eventually(t, func() bool {
			return refused.MatchString(s.DoString(t, "INFO", "commandstats"))
		}, "the client did not try to subscribe")
		require.Zero(t, listenersOf(s, "", channelOf("order")))
	} else {
		waitForListeners(t, s, "order", 1)
	}
	end()
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
}

// Which locks work where a command is refused: integration.TestTablesOfRefusedCommandsAreTrue.
func TestRefusedCommandIsReportedWithWhatToDoWithoutIt(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		refuses      redistest.Option
		options      rlock.Options
		code, advice string
	}{
		"EVALSHA renamed": {redistest.WithoutCommands("EVALSHA"), rlock.Options{}, "UNSUPPORTED",
			"holdfast needs Lua scripts"},
		"WAIT forbidden": {redistest.WithUser("app", "secret", "~*", "&*", "+@all", "-wait"),
			rlock.Options{SyncReplicas: 1}, "NOPERM",
			"SyncReplicas needs WAIT; grant +wait, or set SyncReplicas to 0"},
		"HSET renamed": {redistest.WithoutCommands("HSET"), rlock.Options{}, "NOCOMMAND",
			"docs/servers.md"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, c.refuses)
			client := newClientOn(t, s.Client(t), c.options)
			start := time.Now()
			_, err := client.NewLock("order").TryLock(t.Context(), longWait, longLease)
			require.Less(t, time.Since(start), longWait, "it waited for what cannot be had")
			requireRefusal(t, err, c.code)
			require.ErrorContains(t, err, c.advice)
			waitUntilFree(t, s, "order")
		})
	}
}

func TestClientThatMayNotAskForTheNodesOfAClusterIsToldSo(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	for _, node := range cluster.Nodes {
		for _, command := range []string{"cluster", "pubsub"} {
			node.Do(t, "ACL", "SETUSER", "no-"+command, "on", ">secret", "~*", "&*", "+@all", "-"+command)
		}
	}
	as := func(user string) func(*rueidis.ClientOption) {
		return func(o *rueidis.ClientOption) { o.Username, o.Password = user, "secret" }
	}

	// rueidis takes it for a single server. Half of the locks are on the other node.
	single := newClientOn(t, cluster.Nodes[0].Client(t, as("no-cluster")), rlock.Options{})
	name := "a"
	for cluster.Owner(t, cluster.Slot(t, name)) == cluster.Nodes[0] {
		name += "a"
	}
	start := time.Now()
	_, err := single.NewLock(name).TryLock(t.Context(), longWait, longLease)
	require.Less(t, time.Since(start), longWait, "it waited for another topology")
	requireRefusal(t, err, "MOVED")
	require.ErrorContains(t, err, "grant +cluster")

	// It cannot know which channels the others listen to.
	blind := newClientOn(t, cluster.Client(t, as("no-pubsub")), rlock.Options{})
	_, err = blind.NewLock(name).TryLock(t.Context(), longWait, longLease)
	requireRefusal(t, err, "NOPERM")
	require.ErrorContains(t, err, "set rlock.Options.PubSub to the same value in every process")
	told := newClientOn(t, cluster.Client(t, as("no-pubsub")),
		rlock.Options{PubSub: rlock.PubSubSharded})
	unlock(t, take(t, told.NewLock(name), longLease))
}

// startClockless starts a server that refuses TIME, also to scripts, as some managed services do.
func startClockless(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, redistest.WithArgs("--rename-command", "TIME", ""))
}

func TestServerThatRefusesTimeToScriptsHasNoHandOversAndTheLogSaysSoOnce(t *testing.T) {
	t.Parallel()
	s := startClockless(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	for range 2 {
		hold := take(t, newClient(t, s, rlock.Options{}).NewLock("order"), rlock.Watchdog)
		waiter := kindNamed("reentrant").parked(t, s, c.NewLock("order"))
		start := time.Now()
		unlock(t, hold)
		o := result(t, waiter)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(start), promptly, "it was not woken")
		unlock(t, o.Hold)
		requireFree(t, s, "order")
	}
	eventually(t, func() bool { return len(log.With("level=WARN")) > 0 }, "no warning")
	require.Len(t, log.With("level=WARN"), 1)
	require.Contains(t, log.With("level=WARN")[0],
		"scripts on this server may not call a command that hand-overs need")
	require.Contains(t, log.With("level=WARN")[0], "command called from")
}

func TestLocksThatNeedTheClockOfTheServerSaySoWhereItIsRefused(t *testing.T) {
	t.Parallel()
	s := startClockless(t)
	c := newClient(t, s, rlock.Options{})
	requireRefusedAtOnce(t, c.NewFairLock("fair"), "NOCOMMAND")
	_, err := c.NewFairLock("fair").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorContains(t, err, "fair locks, package once, and redlock.Options.Epoch need TIME")
	requireFree(t, s, "fair")
}

func TestReadersStepBackForAWriterWithoutTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	s := startClockless(t)
	c := newClient(t, s, rlock.Options{})
	reading := take(t, newReadLock(c, "page"), longLease)
	writer := lockInBackground(t.Context(), newWriteLock(c, "page"), longLease)
	eventually(t, func() bool { return exists(s, "holdfast_rwlock_writer:{page}") },
		"no writer waits")
	_, err := newReadLock(c, "page").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, reading)
	unlock(t, acquired(t, writer))
	requireFree(t, s, "page")
}

func TestNameWhoseKeysWouldNotShareASlotIsRefusedOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	for name, channel := range map[string]string{
		"plain":     "redisson_lock__channel:{plain}",
		"{tag}rest": "redisson_lock__channel:{tag}rest",
	} {
		s := nodeOf(t, cluster, name)
		require.Same(t, s, nodeOf(t, cluster, channel))
		hold := take(t, c.NewLock(name), rlock.Lease(time.Minute))
		require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
		waiter := lockInBackground(t.Context(), c.NewLock(name), rlock.Lease(time.Minute))
		nodes, prefix := []*redistest.Server{s}, "SHARD"
		if !knowsSharded(t, cluster) {
			nodes, prefix = cluster.Nodes, "" // any node serves a classic channel
		}
		eventually(t, func() bool {
			return slices.ContainsFunc(nodes,
				func(node *redistest.Server) bool { return listenersOf(node, prefix, channel) == 1 })
		}, "nobody listens on "+channel)
		unlock(t, hold)
		unlock(t, acquired(t, waiter))
		require.True(t, absent(s, name))
	}
	for _, name := range []string{"a{b", "x{}y"} {
		lock := c.NewLock(name)
		_, locked := lock.Lock(t.Context(), rlock.Lease(time.Second))
		_, tried := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
		_, forced := lock.ForceUnlock(t.Context())
		_, looked := lock.Info(t.Context())
		for _, err := range []error{locked, tried, forced, looked} {
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, "slot")
			require.ErrorContains(t, err, "use a name without braces")
		}
	}
}

func TestLocksSurviveAFailover(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	holder := newClientOn(t, group.Client(t), rlock.Options{WatchdogLease: 2 * time.Minute})
	waiting := newClientOn(t, group.Client(t), rlock.Options{})
	both := []kind{kindNamed("reentrant"), kindNamed("write")}
	var renewed, explicit []*rlock.Hold
	var waiters []<-chan outcome
	for _, k := range both {
		renewed = append(renewed, take(t, k.lock(holder, "renewed "+k.name), rlock.Watchdog))
		explicit = append(explicit, take(t, k.lock(holder, k.name), rlock.Lease(time.Minute)))
		waiters = append(waiters,
			lockInBackground(t.Context(), k.lock(waiting, k.name), rlock.Lease(time.Minute)))
		k.waitForListeners(t, group.Nodes[0], k.name, 1)
	}

	master := group.Nodes[1]
	eventually(t, func() bool {
		theirs, err := group.Nodes[0].Call("DBSIZE")
		ours, failed := master.Call("DBSIZE")
		return err == nil && failed == nil && theirs == ours
	}, "the replica lags")
	group.Nodes[0].Kill(t)
	require.Same(t, master, group.WaitForFailover(t, group.Nodes[0]))
	for i, k := range both {
		require.True(t, renewed[i].Valid(), k.name)
		require.Equal(t, k.hash(renewed[i].Owner(), 1), master.DoMap(t, "HGETALL", "renewed "+k.name))
		_, err := k.lock(waiting, "renewed "+k.name).TryLock(t.Context(), 200*time.Millisecond,
			rlock.Lease(time.Minute))
		require.Error(t, err, "%s: taken from its holder", k.name)
		// The waiters have moved to the new master, where the releases are announced.
		k.waitForListeners(t, master, k.name, 1)
		start := time.Now()
		unlock(t, explicit[i])
		unlock(t, acquired(t, waiters[i]))
		require.Less(t, time.Since(start), 3*time.Second, "%s: not woken", k.name)
		unlock(t, renewed[i])
		waitUntilFree(t, master, k.name)
		waitUntilFree(t, master, "renewed "+k.name) // the waiter leaves in the background
	}
}
