package redistest

import (
	"os"
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/luashim"
)

// profileVariable names what servers refuse: a profile.
const profileVariable = "HOLDFAST_TEST_PROFILE"

// respVariable is the version of the protocol that clients speak: 2, or rueidis' choice.
const respVariable = "HOLDFAST_TEST_RESP"

// A profile is what managed services refuse, all of them taken together: docs/servers.md has the
// sources. It applies to single servers and to the nodes of a cluster, since services have neither
// Sentinels nor replicas that a client could start.
type profile struct {
	commands []string // of all servers
	single   []string // of servers that are not a cluster's
	scripts  []string // commands that scripts may not call
}

var managed = profile{
	commands: []string{"ACL", "BGREWRITEAOF", "BGSAVE", "CLIENT", "COMMAND", "CONFIG", "DEBUG",
		"FAILOVER", "KEYS", "LASTSAVE", "LATENCY", "MEMORY", "MIGRATE", "MODULE", "MONITOR", "MOVE",
		"OBJECT", "PSUBSCRIBE", "PUNSUBSCRIBE", "REPLICAOF", "ROLE", "SAVE", "SHUTDOWN", "SLAVEOF",
		"SLOWLOG", "SWAPDB", "WAIT"},
	single: []string{"CLUSTER", "PSYNC", "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "SYNC"},
}

// profiles by name. Scripts of all of them must have keys, and use no other keys.
var profiles = map[string]profile{
	"managed": managed,
	// serverless is ElastiCache Serverless.
	"serverless": {commands: managed.commands, single: managed.single, scripts: []string{"TIME"}},
}

// ScriptsLack reports whether the profile that the environment names refuses scripts a command.
func ScriptsLack(command string) bool {
	return slices.Contains(profiles[os.Getenv(profileVariable)].scripts, command)
}

// named returns the profile that the environment names.
func named(tb testing.TB) (p profile, found bool) {
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

// follow applies the profile that the environment names, if it can be applied to such a server.
func (s *settings) follow(tb testing.TB) {
	tb.Helper()
	p, found := named(tb)
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

// shim lets a script of a client do what the profile allows.
func (p profile) shim(source string) string {
	source = luashim.Declared(source)
	if len(p.scripts) > 0 {
		source = luashim.Refusing(p.scripts...)(source)
	}
	return luashim.Keyed(source)
}

// adapt makes a client do without what the environment says that servers do not have.
func adapt(option *rueidis.ClientOption) {
	if os.Getenv(respVariable) == "2" {
		option.AlwaysRESP2, option.DisableCache = true, true
	}
	if os.Getenv(profileVariable) != "" {
		option.DisableCache = true // CLIENT TRACKING is refused
	}
}
