package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// product is a make of servers.
type product struct {
	name    string
	field   string // of INFO, with its version
	tested  string // the versions that are tested
	newest  int    // the newest major version that is tested; 0 if none is
	minimum [2]int // the oldest version that works
}

// products has the makes that say what they are; the last one is what all others claim to be.
var products = []product{
	{"Dragonfly", "dragonfly_version", "", 0, [2]int{}},
	{"Valkey", "valkey_version", "7.2 to 9.1", 9, [2]int{7, 2}},
	{"Redis", "redis_version", "6.2 to 8.2", 8, [2]int{6, 2}},
}

// productOf returns what a server is, and its version.
func productOf(said map[string]string) (p product, version string) {
	for _, p = range products {
		if version = said[p.field]; version != "" {
			break
		}
	}
	if strings.Contains(said["executable"], "keydb") {
		p = product{name: "KeyDB", minimum: [2]int{6, 2}}
	}
	return p, version
}

// testedVersions is what to look for by hand.
const testedVersions = "that the server is Redis 6.2 to 8 or Valkey 7.2 to 9"

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
	var major, minor int
	_, err := fmt.Sscanf(strings.TrimLeft(version, "dfv-"), "%d.%d", &major, &minor)
	if err != nil {
		return unknown(fmt.Errorf("INFO says %q", version), testedVersions)
	}
	name := p.name + " " + version
	older := cmp.Or(cmp.Compare(major, p.minimum[0]), cmp.Compare(minor, p.minimum[1])) < 0
	const advice = "read what follows, and try your locks before you rely on it"
	switch {
	case older:
		return failure("use Redis 6.2 or newer, or Valkey", "%s is too old", name)
	case p.newest == 0:
		return warning(advice, "holdfast is not tested with %s", name)
	case major > p.newest:
		return warning(advice, "%s is newer than the tested versions (%s)", name, p.tested)
	}
	return ok("%s", name)
}
