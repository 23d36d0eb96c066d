// Package doctor looks for what may break locks on a server: how it is configured, what it allows
// this user, and how it fares.
package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/printable"
)

// Options says how thorough an examination is.
type Options struct {
	Prefix string // of the names that locks are tried under, for users that may use only some
	Full   bool   // look at all keys, however many there are

	Kinds  []string // of locks to try: of KindNames; nil for all
	Ignore []string // checks to leave out: of Names

	Endpoint string // the name of a single server; "" if it has none, only an address
}

// check looks at one thing. Its findings say what it saw; there are none where it does not apply.
type check struct {
	name string
	look func(context.Context, *node) []Finding
	once bool // on a cluster, not for each master
}

// checks has all checks, in the order of the report.
var checks = []check{
	{name: needed, look: reachable}, // the first, because others need a node that replies
	{name: "version", look: version},
	{name: "service", look: service},
	{name: "role", look: role},
	{name: "cluster", look: cluster},
	{name: "slots", look: sharding},
	{name: "endpoint", look: endpoint},
	{name: "eviction", look: eviction},
	{name: "memory", look: memory},
	{name: "persistence", look: persistence},
	{name: "disk", look: disk},
	{name: "replicas", look: replicas},
	{name: "failover", look: failover},
	{name: "connections", look: connections},
	{name: "timeout", look: timeout},
	{name: "scripts", look: scripts},
	{name: "time", look: scriptTime},
	{name: "channels", look: channels},
	{name: "locks", look: locks},
	{name: "clock", look: clock},
	{name: "round-trip", look: roundTrip},
	{name: "slowlog", look: slowlog},
	{name: "leases", look: leases, once: true},
}

// needed is the check that the others need.
const needed = "node"

// ignores reports whether a check is left out.
func (o Options) ignores(check string) bool { return slices.Contains(o.Ignore, check) }

// KindNames returns the kinds of locks that are tried.
func KindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Names returns the names of all checks, in the order of the report.
func Names() (names []string) {
	for _, c := range checks {
		names = append(names, c.name)
		if c.name == "locks" {
			names = append(append(names, KindNames()...), handOverCheck)
		}
	}
	return names
}

// checkTime bounds one check on one node.
const checkTime = 20 * time.Second

// Examine passes the findings of all checks to report, and returns the worst state. On a cluster it
// examines each master. It returns an error if ctx ends before, and has cleaned up then.
func Examine(ctx context.Context, redis rueidis.Client, o Options, report func(Finding),
) (worst State, err error) {
	nodes, err := masters(ctx, redis, o)
	if err != nil {
		return Error, err
	}
	for _, c := range checks {
		if o.ignores(c.name) && c.name != needed {
			continue
		}
		for _, f := range c.examine(ctx, nodes) {
			if o.ignores(f.Check) {
				continue
			}
			worst = max(worst, f.State)
			report(f)
		}
		nodes = slices.DeleteFunc(nodes, (*node).isGone)
		if ctx.Err() != nil || len(nodes) == 0 {
			return worst, ctx.Err()
		}
	}
	return worst, nil
}

// examine returns what the check finds on these nodes. What is the same on all is one finding.
func (c check) examine(ctx context.Context, nodes []*node) []Finding {
	if c.once {
		nodes = nodes[:1]
	}
	var first, all []Finding
	same := true
	for i, n := range nodes {
		found := c.examineNode(ctx, n)
		if i == 0 {
			first = slices.Clone(found)
		}
		same = same && slices.Equal(first, found)
		for _, f := range found {
			f.Node = printable.Short(n.address)
			all = append(all, f)
		}
	}
	if same {
		return first
	}
	return all
}

// examineNode returns what the check finds on one node.
func (c check) examineNode(ctx context.Context, n *node) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found := c.look(ctx, n)
	for i := range found {
		if found[i].Check == "" {
			found[i].Check = c.name
		}
	}
	return found
}
