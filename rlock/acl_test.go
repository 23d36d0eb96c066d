//go:build redis

package rlock_test

import (
	"context"
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

func TestReleaseThatMayNotBeAnnouncedSucceedsAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]string{
		"no PUBLISH": {"-publish"},
		"no channel": {"resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s, rules...)
			other := newClient(t, s, rlock.Options{})
			onEveryKind(t, func(t *testing.T, k kind) {
				var log logtest.Lines
				c := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser)
				for _, name := range []string{"a", "b", "a"} {
					hold := take(t, k.lock(c, name+k.name), rlock.Watchdog)
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
				}
				hold := acquired(t,
					lockInBackground(t.Context(), k.lock(c, "a"+k.name), rlock.Watchdog))
				held, err := k.lock(c, "a"+k.name).ForceUnlock(t.Context())
				require.NoError(t, err)
				require.True(t, held)
				require.ErrorIs(t, hold.Err(), rlock.ErrLost)

				closeClient(t, c) // waits for the log
				logged := log.With("refused to announce")
				require.Len(t, logged, 1)
				require.Contains(t, logged[0], "NOPERM")
				require.Contains(t, logged[0], k.channel+":{a"+k.name+"}")
				requireFree(t, s, "a"+k.name)
			})
		})
	}
}

func TestWaiterThatMayNotSubscribeAsksByItself(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]string{
		"no SUBSCRIBE": {"-subscribe"},
		"no channel":   {"resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s, rules...)
			other := newClient(t, s, rlock.Options{})
			var waiters []<-chan outcome
			var logs []*logtest.Lines
			for _, k := range contests() {
				k.warm(t, other, k.name)
			}
			for _, k := range contests() {
				log := new(logtest.Lines)
				c := newClient(t, s, rlock.Options{Logger: log.Logger()}, asUser)
				// to have a connection
				unlock(t, take(t, k.lock(c, "another "+k.name), time.Second))
				take(t, k.contender(other, k.name), 4*time.Second) // never released
				wait := 100 * time.Millisecond
				if k.lonely {
					wait = time.Second // it must subscribe itself, to a channel of its own
				}
				requireRefusedAfter(t, wait, k.lock(c, k.name))
				waiters = append(waiters,
					lockInBackground(t.Context(), k.lock(c, k.name), time.Minute))
				logs = append(logs, log)
			}
			for i, k := range contests() {
				channels := 1 // of both waiters
				if k.lonely {
					channels = 2
				}
				eventually(t,
					func() bool { return len(logs[i].With("refuses the channel")) >= channels },
					"the refusal was not logged")
			}
			s.ResetStats(t)
			for _, waiter := range waiters {
				unlock(t, acquired(t, waiter))
			}
			require.Less(t, s.CommandStats(t)["evalsha"], 6*len(waiters), "the waiters poll")
		})
	}
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
type permissions struct{ commands, keys, channels, onClusters []string }

// forEveryLock is the row of docs/permissions.md with what locks of all kinds need, forHandOvers
// the row with what some need besides, and forIdentities the one with what no lock needs.
const (
	forEveryLock  = "every lock"
	forHandOvers  = "hand-overs of plain and fenced locks"
	forIdentities = "who clients are (optional)"
)

// listedPermissions returns the permissions that docs/permissions.md lists for locks of a kind
// whose names begin with "order:".
func listedPermissions(t testing.TB, k kind) permissions {
	t.Helper()
	p := listedWithoutHandOvers(t, k)
	if k.grants {
		more := listedUnder(t, forHandOvers)
		p.commands = append(p.commands, more.commands...)
		p.keys = append(p.keys, more.keys...)
		p.channels = append(p.channels, more.channels...)
	}
	p.keys = append(p.keys, listedUnder(t, forIdentities).keys...)
	onClusters := listedUnder(t, "a cluster")
	p.onClusters, p.channels = onClusters.commands, append(p.channels, onClusters.channels...)
	return p
}

// listedWithoutHandOvers returns the permissions for locks whose releases are only announced.
func listedWithoutHandOvers(t testing.TB, k kind) permissions {
	t.Helper()
	return listedUnder(t, forEveryLock, k.family()+" locks")
}

// family returns the name that docs/permissions.md has for kinds with the same permissions.
func (k kind) family() string {
	switch {
	case k.mode != "":
		return "read-write"
	case k.name == "reentrant":
		return "plain"
	default:
		return k.name
	}
}

// listedUnder returns the permissions that docs/permissions.md lists in these rows.
func listedUnder(t testing.TB, titles ...string) (p permissions) {
	t.Helper()
	document, err := os.ReadFile("../docs/permissions.md")
	require.NoError(t, err)
	rows := map[string]string{}
	for line := range strings.Lines(string(document)) {
		if cells := strings.SplitN(strings.TrimPrefix(line, "| "), " |", 2); len(cells) == 2 {
			rows[cells[0]] = cells[1]
		}
	}
	for _, title := range titles {
		row, found := rows[title]
		require.True(t, found, title)
		p.commands = append(p.commands, listedCommand.FindAllString(row, -1)...)
		p.keys = append(p.keys, regexp.MustCompile("~[^ `]+").FindAllString(row, -1)...)
		p.channels = append(p.channels, regexp.MustCompile("&[^ `]+").FindAllString(row, -1)...)
	}
	return p
}

var listedCommand = regexp.MustCompile(`\+[a-z]+`)

func TestListedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	t.Run("single node", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		for _, k := range contests() {
			p := listedPermissions(t, k)
			permit(t, s, k, p, p.commands)
		}
		onEveryContest(t, func(t *testing.T, k kind) {
			requirePermitted(t, k, func() rueidis.Client { return s.Client(t, asUserOf(k)) },
				func(lock string) { k.waitForListeners(t, s, lock, 1) })
			requireNothingDenied(t, s) // not even where a script can do without
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartCluster(t, 3)
		sharded := knowsSharded(t, c)
		for _, node := range c.Nodes {
			for _, k := range contests() {
				p := listedPermissions(t, k)
				if !sharded { // an old server has no permission for what it lacks
					p.onClusters = slices.DeleteFunc(p.onClusters, func(command string) bool {
						return slices.Contains(
							[]string{"+spublish", "+ssubscribe", "+sunsubscribe"}, command)
					})
				}
				permit(t, node, k, p, append(p.commands, p.onClusters...))
			}
		}
		onEveryContest(t, func(t *testing.T, k kind) {
			requirePermitted(
				t,
				k,
				func() rueidis.Client { return c.Client(t, asUserOf(k)) },
				func(lock string) {
					nodes := c.Nodes
					if sharded {
						nodes = []*redistest.Server{nodeOf(t, c, lock)}
					}
					k.waitForListener(t, nodes, sharded, lock)
				},
			)
			requireNothingDenied(t, c.Nodes...)
		})
	})
}

// requireNothingDenied requires that no user was refused anything, in a script or elsewhere, but
// rueidis' question whether this is a cluster.
func requireNothingDenied(t *testing.T, nodes ...*redistest.Server) {
	t.Helper()
	for _, node := range nodes {
		for _, entry := range node.Do(t, "ACL", "LOG").([]any) {
			fields := entry.([]any)
			object := fields[slices.Index(fields, any("object"))+1]
			require.Regexp(t, `^cluster\b`, object, "%v", fields)
		}
	}
}

// The user is from before there were hand-overs.
func TestUserWithoutPermissionForHandOversWorksWithoutThemAndIsWarnedOnce(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !k.grants {
			continue
		}
		for name, missing := range map[string]func(old, listed permissions) permissions{
			"nothing of it": func(old, _ permissions) permissions { return old },
			"no keys": func(old, listed permissions) permissions {
				return permissions{commands: listed.commands, keys: old.keys, channels: listed.channels}
			},
			"no channels": func(old, listed permissions) permissions {
				return permissions{commands: listed.commands, keys: listed.keys, channels: old.channels}
			},
		} {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				p := missing(listedWithoutHandOvers(t, k), listedPermissions(t, k))
				permit(t, s, k, p, p.commands)
				var log logtest.Lines
				options := rlock.Options{Logger: log.Logger()}
				c := newClientOn(t, s.Client(t, asUserOf(k)), options)
				other := newClient(t, s, rlock.Options{})
				for _, name := range []string{"order:a", "order:b", "order:a"} {
					for _, from := range []*rlock.Client{c, other} {
						hold := take(t, k.lock(from, name), rlock.Watchdog)
						waiter := k.parked(t, s, k.lock(c, name)) // which may be woken by either
						start := time.Now()
						unlock(t, hold)
						o := result(t, waiter)
						require.NoError(t, o.Err)
						require.Less(t, o.At.Sub(start), promptly, "it was not woken")
						unlock(t, o.Hold)
						requireFree(t, s, name)
					}
				}
				eventually(t, func() bool { return len(log.With("level=WARN")) > 0 }, "no warning")
				require.Len(t, log.With("level=WARN"), 1)
				require.Contains(t, log.With("level=WARN")[0],
					"the ACL of this user forbids what hand-overs need")
				require.Contains(t, log.With("level=WARN")[0], "NOPERM")
				_, err := c.NewLock("invoice").TryLock(t.Context(), rlock.NoWait, time.Minute)
				requireRefusal(t, err, "NOPERM")
			})
		}
	}
}

// permit makes a user for a kind of locks that may only execute these commands on them.
func permit(t testing.TB, s *redistest.Server, k kind, p permissions, commands []string) {
	t.Helper()
	// Before Redis 7 a new user may have all channels.
	rules := slices.Concat(
		[]string{"ACL", "SETUSER", userOf(k), "reset", "resetchannels", "on", ">secret"}, p.keys,
		p.channels, commands)
	s.Do(t, rules...)
}

func userOf(k kind) string { return strings.ReplaceAll(k.name, " ", "-") }

// asUserOf makes a client connect as the user that permit makes.
func asUserOf(k kind) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.Username, o.Password = userOf(k), "secret" }
}

// requirePermitted does everything that can be done with a lock.
func requirePermitted(
	t *testing.T, k kind, connect func() rueidis.Client, waitForListener func(lock string),
) {
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
	waiter := lockInBackground(t.Context(), k.lock(other, name), time.Minute)
	waitForListener(name)
	before := hold.Deadline()
	eventually(t, func() bool { return hold.Deadline().After(before) }, "not renewed")
	require.True(t, hold.Valid())
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
