package redistest

import (
	"os"
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/luashim"
)

// profileVariable is the environment variable with the name of a profile.
const profileVariable = "HOLDFAST_TEST_PROFILE"

// respVariable is the environment variable with the version of the protocol that clients speak: 2,
// or else rueidis' choice.
const respVariable = "HOLDFAST_TEST_RESP"

// profile is what a server refuses. It applies to single servers and to the nodes of a cluster, not
// to Sentinels and replicas, which managed services do not show.
type profile struct {
	commands []string // of all servers
	single   []string // only of servers that are not a cluster's
	scripts  []string // commands that scripts may not call
}

// managed refuses nearly all that one managed service or another does: docs/servers.md has the
// sources.
var managed = profile{
	commands: []string{"ACL", "BGREWRITEAOF", "BGSAVE", "CLIENT", "COMMAND", "CONFIG", "DEBUG",
		"FAILOVER", "KEYS", "LASTSAVE", "LATENCY", "MEMORY", "MIGRATE", "MODULE", "MONITOR", "MOVE",
		"OBJECT", "PSUBSCRIBE", "PUNSUBSCRIBE", "REPLICAOF", "ROLE", "SAVE", "SHUTDOWN", "SLAVEOF",
		"SLOWLOG", "SWAPDB", "WAIT"},
	single: []string{"CLUSTER", "PSYNC", "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "SYNC"},
}

// profiles has all profiles by their names. With any, scripts must have keys, and declare all that
// they use.
var profiles = map[string]profile{
	"managed": managed,
	// As ElastiCache Serverless, scripts may not ask for the time either.
	"serverless": {commands: managed.commands, single: managed.single, scripts: []string{"TIME"}},
}

// ScriptsLack reports whether the profile that the environment names refuses scripts a command.
func ScriptsLack(command string) bool {
	return slices.Contains(profiles[os.Getenv(profileVariable)].scripts, command)
}

// chosenProfile returns the profile that the environment names.
func chosenProfile(tb testing.TB) (p profile, found bool) {
	tb.Helper()
	name := os.Getenv(profileVariable)
	if name == "" {
		return profile{}, false
	}
	p, found = profiles[name]
	if !found {
		tb.Fatalf("redistest: %s=%s: want managed or serverless", profileVariable, name)
	}
	return p, true
}

// applyProfile applies the profile that the environment names, if it is for such a server.
func (s *settings) applyProfile(tb testing.TB) {
	tb.Helper()
	p, found := chosenProfile(tb)
	if !found || s.sentinel || s.hostNetwork && !s.clusterNode {
		return
	}
	WithoutCommands(p.commands...)(tb, s)
	switch {
	case s.clusterNode:
		WithoutCommands(p.scripts...)(tb, s) // there is nothing between scripts and a node
	case s.tls != nil:
		WithoutCommands(append(p.single, p.scripts...)...)(tb, s)
	default:
		WithoutCommands(p.single...)(tb, s)
		s.rewrite = p.shim
	}
}

// shim changes a script of a client: it may do only what the profile allows.
func (p profile) shim(source string) string {
	source = luashim.Declared(source)
	if len(p.scripts) > 0 {
		source = luashim.Refusing(p.scripts...)(source)
	}
	return luashim.Keyed(source)
}

// adapt makes a client do without what servers lack, by the environment.
func adapt(option *rueidis.ClientOption) {
	if os.Getenv(respVariable) == "2" {
		option.AlwaysRESP2, option.DisableCache = true, true
	}
	if os.Getenv(profileVariable) != "" {
		option.DisableCache = true // CLIENT TRACKING is refused
	}
}
