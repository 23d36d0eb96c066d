//go:build redis

package rlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

func TestReleaseThatMayNotBeAnnouncedSucceedsAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "-publish")
	other := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		var log logtest.Lines
		c := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser)
		for _, name := range []string{"a", "b", "a"} {
			// The last waiter may have asked once more when it left. Then its lock is being undone.
			hold := acquired(t, lockInBackground(t.Context(), k.lock(c, name+k.name), rlock.Watchdog))
			ctx, cancel := context.WithCancel(t.Context())
			// a fair lock tells nobody else
			waiter := lockInBackground(ctx, k.contender(other, name+k.name), longLease)
			k.waitForListeners(t, s, name+k.name, 1)
			unlock(t, hold)
			cancel()
			if o := result(t, waiter); o.Err == nil {
				unlock(t, o.Hold) // it asked when it began to listen
			}
			waitUntilFree(t, s, name+k.name)
			eventually(t, func() bool { return absent(s, wire.WriterKey(name+k.name)) },
				"readers step back for the writer that has left")
		}
		hold := acquired(t, lockInBackground(t.Context(), k.lock(c, "a"+k.name), rlock.Watchdog))
		held, err := k.lock(c, "a"+k.name).ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)

		closeClient(t, c) // waits for the log
		logged := log.With("rejected the message")
		require.Len(t, logged, 1)
		require.Contains(t, logged[0], "NOPERM")
		require.Contains(t, logged[0], k.channel+":{a"+k.name+"}")
		requireFree(t, s, "a"+k.name)
	})
}

func TestWaiterThatMayNotSubscribeAsksByItself(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "resetchannels")
	other := newClient(t, s, rlock.Options{})
	var waiters []<-chan outcome
	var logs []*logtest.Lines
	for _, k := range contests() {
		log := new(logtest.Lines)
		c := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser)
		take(t, k.contender(other, k.name), rlock.Lease(4*time.Second)) // never released
		waiters = append(
			waiters,
			lockInBackground(t.Context(), k.lock(c, k.name), rlock.Lease(time.Minute)),
		)
		logs = append(logs, log)
	}
	for _, log := range logs {
		eventually(t, func() bool { return len(log.With("rejects the channel")) > 0 },
			"the refusal was not logged")
	}
	s.ResetStats(t)
	for _, waiter := range waiters {
		unlock(t, acquired(t, waiter))
	}
	require.Less(t, s.CommandStats(t)["evalsha"], 6*len(waiters), "the waiters poll")
}

func TestUserThatMayNotExpireKeysLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "-pexpire")
	c := newClient(t, s, rlock.Options{}, asUser)
	onEveryKind(t, func(t *testing.T, k kind) {
		requireRefusedAtOnce(t, k.lock(c, k.name), "NOPERM")
		requireFree(t, s, k.name)
	})
}

// permissions are rules of an ACL.
type permissions struct{ commands, keys, channels []string }

// listedPermissions returns the permissions that docs/permissions.md lists for locks of a kind
// whose names begin with "order:", with or without optional ones.
func listedPermissions(t testing.TB, k kind, optional bool) permissions {
	t.Helper()
	heading := strings.ToUpper(k.name[:1]) + k.name[1:] + " locks"
	switch {
	case k.mode != "":
		heading = "Read-write locks"
	case k.name == "reentrant":
		heading = "Plain locks"
	}
	lines := doctable.Rules(t, "..", heading)
	if k.grants && !optional {
		lines = lines[:len(lines)-1] // for hand-overs
	}
	p := permissionsOf(lines)
	if !optional {
		return p
	}
	p.keys = append(p.keys, permissionsOf(doctable.Rules(t, "..", "Create the user")).keys...)
	p.channels = append(p.channels, clusterPermissions(t).channels...)
	return p
}

// clusterPermissions returns the permissions that docs/permissions.md adds on a cluster.
func clusterPermissions(t testing.TB) permissions {
	t.Helper()
	return permissionsOf(doctable.Rules(t, "..", "Clusters, Sentinel and replicas"))
}

// permissionsOf sorts rules.
func permissionsOf(lines [][]string) (p permissions) {
	for _, rule := range slices.Concat(lines...) {
		switch rule[0] {
		case '+':
			p.commands = append(p.commands, rule)
		case '~':
			p.keys = append(p.keys, rule)
		case '&':
			p.channels = append(p.channels, rule)
		}
	}
	return p
}

func TestListedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	single, cluster := redistest.Start(t), redistest.StartCluster(t, 3)
	sentinel := redistest.StartSentinel(t)
	second := func(t testing.TB, as ...func(*rueidis.ClientOption)) rueidis.Client {
		return sentinel.Client(t, append(as, func(o *rueidis.ClientOption) { o.SelectDB = 1 })...)
	}
	for name, of := range map[string]struct {
		nodes  []*redistest.Server
		client func(testing.TB, ...func(*rueidis.ClientOption)) rueidis.Client
		more   []string
	}{
		"single node": {[]*redistest.Server{single}, single.Client, nil},
		"Sentinel":    {sentinel.Nodes[:1], second, []string{"+role", "+select"}},
		"cluster":     {cluster.Nodes, cluster.Client, clusterPermissions(t).commands},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !knowsSharded(t, cluster) { // it has no permission for what it lacks
				of.more = slices.DeleteFunc(of.more, func(command string) bool {
					return slices.Contains([]string{"+spublish", "+ssubscribe", "+sunsubscribe"}, command)
				})
			}
			for _, k := range contests() {
				p := listedPermissions(t, k, true)
				p.commands = append(p.commands, of.more...)
				for _, node := range of.nodes {
					permit(t, node, k, p)
				}
			}
			onEveryContest(t, func(t *testing.T, k kind) {
				requirePermitted(t, k, func() rueidis.Client { return of.client(t, asUserOf(k)) })
				for _, node := range of.nodes { // not even where a script can do without
					for _, entry := range node.Do(t, "ACL", "LOG").([]any) {
						fields := entry.([]any)
						object := fields[slices.Index(fields, any("object"))+1]
						require.Regexp(t, `^cluster\b`, object, "%v: not rueidis' question for one", fields)
					}
				}
			})
		})
	}
}

// The user is from before there were hand-overs.
func TestUserWithoutPermissionForHandOversWorksWithoutThemAndIsWarnedOnce(t *testing.T) {
	t.Parallel()
	k := kindNamed("reentrant")
	for name, channels := range map[string]bool{"nothing of it": true, "no channels": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := listedPermissions(t, k, false)
			if old := p.channels; !channels {
				p = listedPermissions(t, k, true)
				p.channels = old
			}
			permit(t, s, k, p)
			var log logtest.Lines
			c := newClientOn(t, s.Client(t, asUserOf(k)), rlock.Options{Logger: log.Logger()})
			other := newClient(t, s, rlock.Options{})
			for _, by := range [][2]*rlock.Client{{c, c}, {c, other}, {other, c}} {
				hold := take(t, k.lock(by[0], "order:a"), rlock.Watchdog)
				waiter := lockInBackground(t.Context(), k.lock(by[1], "order:a"), rlock.Watchdog)
				k.waitForListeners(t, s, "order:a", 1)
				start := time.Now()
				unlock(t, hold)
				o := result(t, waiter)
				require.NoError(t, o.Err)
				require.Less(t, o.At.Sub(start), promptly, "it was not woken")
				unlock(t, o.Hold)
				waitUntilFree(t, s, "order:a")
				k.waitForListeners(t, s, "order:a", 0)
			}
			closeClient(t, c) // waits for the log
			warnings := log.With("level=WARN")
			require.Len(t, warnings, 1)
			require.Contains(t, warnings[0], "the ACL of this user does not allow hand-overs")
			require.Contains(t, warnings[0], "NOPERM")
		})
	}
}

// permit makes a user for a kind of locks who has these permissions only.
func permit(t testing.TB, s *redistest.Server, k kind, p permissions) {
	t.Helper()
	// Before Redis 7 a new user may have all channels.
	rules := slices.Concat(
		[]string{"ACL", "SETUSER", userOf(k), "reset", "resetchannels", "on", ">secret"}, p.keys,
		p.channels, p.commands)
	s.Do(t, rules...)
}

func userOf(k kind) string { return strings.ReplaceAll(k.name, " ", "-") }

// asUserOf makes a client connect as the user that permit makes.
func asUserOf(k kind) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.Username, o.Password = userOf(k), "secret" }
}

// requirePermitted does everything that can be done with a lock.
func requirePermitted(t *testing.T, k kind, connect func() rueidis.Client) {
	t.Helper()
	var log logtest.Lines
	options := rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()}
	c, other := newClientOn(t, connect(), options), newClientOn(t, connect(), options)
	name := "order:" + userOf(k)
	owner := rlock.WithOwner(t.Context())
	hold := takeWith(owner, t, k.contender(c, name), rlock.Watchdog)
	nested := takeWith(owner, t, k.contender(c, name), rlock.Watchdog)
	var reading *rlock.Hold
	if k.contenderMode == "write" {
		reading = takeWith(owner, t, newReadLock(c, name), rlock.Watchdog)
	}
	requireRefusedAfter(t, 200*time.Millisecond, k.lock(other, name)) // it leaves the queue, too
	waiter := lockInBackground(t.Context(), k.lock(other, name), rlock.Lease(time.Minute))
	waitForRenewal(t, []*rlock.Hold{hold}) // by then the waiter listens
	info, err := k.contender(c, name).Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, hold.Owner(), info.Owner)
	unlock(t, nested)
	unlock(t, hold)
	if reading != nil { // otherwise its owner still holds it, after the downgrade
		unlock(t, reading)
	}
	acquired(t, waiter)
	_, err = k.lock(c, name).ForceUnlock(t.Context())
	require.NoError(t, err)
	require.Empty(t, log.With("NOPERM"))
}
