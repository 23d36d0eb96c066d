//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Which locks work where a command is refused: integration.TestTablesOfRefusedCommandsAreTrue.

func TestRefusedCommandIsReportedWithWhatToDoWithoutIt(t *testing.T) {
	t.Parallel()
	user := func(rules ...string) redistest.Option {
		return redistest.WithUser("app", "secret", append([]string{"~*", "&*", "+@all"}, rules...)...)
	}
	const (
		noScripts = "holdfast needs Lua scripts"
		noWait    = "SyncReplicas needs WAIT; allow WAIT, or set SyncReplicas to 0"
	)
	for _, test := range []struct {
		what    string
		refuses redistest.Option
		options rlock.Options
		code    string
		advice  string
	}{
		{"EVALSHA renamed", redistest.WithoutCommands("EVALSHA"), rlock.Options{}, "UNSUPPORTED",
			noScripts},
		{"EVAL renamed", redistest.WithoutCommands("EVAL"), rlock.Options{}, "UNSUPPORTED", noScripts},
		{"EVALSHA forbidden", user("-evalsha"), rlock.Options{}, "NOPERM", noScripts},
		{"WAIT renamed", redistest.WithoutCommands("WAIT"), rlock.Options{SyncReplicas: 1}, "UNSUPPORTED",
			noWait},
		{"WAIT forbidden", user("-wait"), rlock.Options{SyncReplicas: 1}, "NOPERM", noWait},
		{"HSET renamed", redistest.WithoutCommands("HSET"), rlock.Options{}, "NOCOMMAND",
			"see docs/servers.md"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, test.refuses)
			c := newClientOn(t, s.Client(t), test.options)
			start := time.Now()
			_, err := c.NewLock("order").TryLock(t.Context(), longWait, longLease)
			require.Less(t, time.Since(start), longWait, "it waited for what cannot be had")
			requireRefusal(t, err, test.code)
			require.ErrorContains(t, err, test.advice)
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
	require.ErrorContains(t, err, "allow CLUSTER")

	_, err = rueidis.NewClient(func() rueidis.ClientOption {
		option := cluster.ClientOption()
		as("no-cluster")(&option)
		return option
	}())
	require.ErrorContains(t, err, "'cluster|slots' command")

	// It cannot know which channels the others listen to.
	blind := newClientOn(t, cluster.Client(t, as("no-pubsub")), rlock.Options{})
	_, err = blind.NewLock(name).TryLock(t.Context(), longWait, longLease)
	requireRefusal(t, err, "NOPERM")
	require.ErrorContains(t, err, "set rlock.Options.PubSub, in all processes alike")
	told := newClientOn(t, cluster.Client(t, as("no-pubsub")),
		rlock.Options{PubSub: rlock.PubSubSharded})
	unlock(t, take(t, told.NewLock(name), longLease))
}
