package doctor

import (
	"context"
	"fmt"
	"strings"

	"holdfast/internal/servers"
)

// product is a make of servers.
type product struct {
	name  string
	field string // of INFO, with its version
	// oldest is the oldest version that works. newest is the newest tested version; without it no
	// version is tested.
	oldest, newest servers.Version
}

// products has the makes that say what they are; the last one is what all others claim to be.
var products = []product{
	{name: "Dragonfly", field: "dragonfly_version"},
	tested("Valkey", "valkey_version"),
	tested("Redis", "redis_version"),
}

// tested returns a make whose versions are in servers.txt.
func tested(name, field string) product {
	p := product{name: name, field: field}
	p.oldest, p.newest = servers.Tested(name)
	return p
}

// productOf returns what a server is, and its version.
func productOf(said map[string]string) (p product, version string) {
	for _, p = range products {
		version = said[p.field]
		if version != "" {
			break
		}
	}
	if strings.Contains(said["executable"], "keydb") {
		p = product{name: "KeyDB", oldest: servers.Version{Major: 6, Minor: 2}}
	}
	return p, version
}

// testedVersions is what to look for by hand.
var testedVersions = fmt.Sprintf("that the server is Redis %s or Valkey %s",
	servers.Range("Redis"), servers.Range("Valkey"))

// version looks at whether holdfast is tested with the server.
func version(ctx context.Context, n *node) []Finding {
	said, err := n.info(ctx)
	if err != nil {
		return one(unknown(err, testedVersions))
	}
	return one(judgeVersion(said))
}

// judgeVersion judges the fields of INFO.
func judgeVersion(said map[string]string) Finding {
	p, version := productOf(said)
	var v servers.Version
	_, err := fmt.Sscanf(strings.TrimLeft(version, "dfv-"), "%d.%d", &v.Major, &v.Minor)
	if err != nil {
		return unknown(fmt.Errorf("INFO has the version %q", version), testedVersions)
	}
	name := p.name + " " + version
	const advice = "read the other lines, and test your locks on this server before you rely on them"
	switch {
	case v.Compare(p.oldest) < 0:
		oldest, _ := servers.Tested("Redis")
		return failure(fmt.Sprintf("use Redis %s or newer, or Valkey", oldest), "%s is too old", name)
	case p.newest == servers.Version{}:
		return warning(advice, "holdfast is not tested with %s", name)
	case v.Major > p.newest.Major:
		return warning(advice, "%s is newer than the tested versions (%s)", name, servers.Range(p.name))
	}
	return ok("%s", name)
}
