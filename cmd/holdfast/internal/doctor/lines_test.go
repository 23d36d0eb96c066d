package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
)

// sight is a line in one of its states, and the server that shows it.
type sight struct {
	check  string // of the table of checks
	line   string // of the finding, if it is another
	state  State
	text   string // a part of the text
	advice string // a part of the advice
	again  bool   // on a busy machine it may take several tries
	on     string // one of shared, or
	server func(*testing.T) rueidis.Client
}

// isIn reports whether the finding is the line in its state.
func (s sight) isIn(f Finding) bool {
	return f.Check == s.line && f.State == s.state && strings.Contains(f.Text, s.text) &&
		strings.Contains(f.Advice, s.advice)
}

// shared are servers that show several sights.
var shared = map[string]func(*testing.T) rueidis.Client{
	"plain":         func(t *testing.T) rueidis.Client { return configured(t) }, // as it comes
	"cluster":       clustered(2, nothing),
	"orphaned":      orphaned,
	"keyed":         keyed,
	"-info":         lacking("-info"),
	"-config":       lacking("-config"),
	"-hset":         lacking("-hset"),
	"-time":         lacking("-time"),
	"resetchannels": lacking("resetchannels"),
}

// with returns a server with arguments.
func with(args ...string) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client { return configured(t, args...) }
}

// set returns a server with a setting.
func set(name, value string) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client {
		server := redistest.Start(t)
		server.Do(t, "CONFIG", "SET", name, value)
		return server.Client(t)
	}
}

// orphaned returns a replica that has no master.
func orphaned(t *testing.T) rueidis.Client {
	server := redistest.Start(t)
	server.Do(t, "REPLICAOF", "127.0.0.1", "1")
	return server.Client(t)
}

// unknownNode returns a client of a cluster that does not know one of the masters.
func unknownNode(t *testing.T) rueidis.Client {
	nodes := redistest.StartCluster(t, 2)
	client := nodes.Client(t)
	known := client.Nodes()
	delete(known, nodes.Nodes[1].Addr())
	return forgetful{client, known}
}

// forgetful is a client of a cluster that knows only some nodes.
type forgetful struct {
	rueidis.Client
	known map[string]rueidis.Client
}

// Nodes returns those that it knows.
func (f forgetful) Nodes() map[string]rueidis.Client { return f.known }

// lacking returns a server that lacks rights for its user.
func lacking(rules ...string) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client { return without(t, rules...) }
}

// claiming returns a server that says something else about itself.
func claiming(fields ...string) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client { return saying(t, fields...) }
}

// replicated returns a master with a replica, after something has happened to them.
func replicated(then func(t *testing.T, master, replica *redistest.Server),
) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client {
		master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
		replica := redistest.StartReplica(t, master)
		then(t, master, replica)
		return master.Client(t)
	}
}

// faulty returns a server whose network has faults once the client is connected.
func faulty(fault func(*faultproxy.Proxy)) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client {
		client, proxy := through(t, redistest.Start(t))
		fault(proxy)
		return client
	}
}

// clustered returns a cluster, after something has happened to it.
func clustered(masters int, then func(*testing.T, *redistest.Cluster), options ...redistest.Option,
) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client {
		nodes := redistest.StartCluster(t, masters, options...)
		then(t, nodes)
		return nodes.Client(t)
	}
}

// listens has a client of its own listen on classic channels of a node.
func listens(t *testing.T, node *redistest.Server, channels ...string) {
	t.Helper()
	option := node.ClientOption()
	option.ForceSingleClient = true
	listener, cancel := connected(t, option).Dedicate()
	t.Cleanup(cancel)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	subscribe := listener.B().Subscribe().Channel(channels...).Build()
	require.NoError(t, listener.Do(t.Context(), subscribe).Error())
}

// faultyCluster returns a cluster of one node whose network has a fault.
func faultyCluster(fault func(*faultproxy.Proxy)) func(*testing.T) rueidis.Client {
	return func(t *testing.T) rueidis.Client {
		nodes := redistest.StartCluster(t, 1)
		network := faultproxy.NewNetwork(t, nodes.Nodes[0].Addr())
		option := nodes.ClientOption()
		network.Use(&option)
		client := connected(t, option)
		network.All(fault)
		return client
	}
}

const always = 1 << 20 // times

func waitFor(t *testing.T, server *redistest.Server, text string, command ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(server.DoString(t, command...), text)
	}, 30*time.Second, 20*time.Millisecond, text)
}

// unasked has what INFO tells, for a user who may not ask.
var unasked = map[string]string{
	"version": "Redis 6.2 to 8", "service": "only one master", "role": "not a replica",
	"eviction": "noeviction", "memory": "used_memory", "persistence": "appendonly",
	"disk": "disk", "replicas": "lag", "failover": "min-replicas-to-write",
	"connections": "maxclients",
}

// impatient makes the nodes of a cluster notice soon what has failed.
func impatient(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for _, node := range c.All() {
		node.Do(t, "CONFIG", "SET", "cluster-node-timeout", "1000")
	}
}

func nothing(*testing.T, *redistest.Cluster) {}

var sights = []sight{
	{check: "version", state: OK, text: ".", on: "plain"},
	{check: "version", state: OK, text: "Valkey 8.1.1", server: claiming("valkey_version:8.1.1")},
	{check: "version", state: OK, text: "Valkey 9.1.2",
		server: claiming("redis_version:7.2.4", "valkey_version:9.1.2")},
	{check: "version", state: Unknown, text: "banana", server: claiming("redis_version:banana")},
	{check: "version", state: Warning, text: "Redis 99.1.0 is newer",
		server: claiming("redis_version:99.1.0")},
	{check: "version", state: Warning, text: "not tested with Dragonfly df-v1.27.1",
		server: claiming("redis_version:7.4.0", "dragonfly_version:df-v1.27.1")},
	{check: "version", state: Warning, text: "not tested with KeyDB 6.3.4",
		server: claiming("redis_version:6.3.4", "executable:/usr/bin/keydb-server")},
	{check: "version", state: Error, text: "Redis 6.0.16 is too old",
		server: claiming("redis_version:6.0.16")},

	{check: "service", state: OK, text: "no sign", on: "plain"},
	{check: "service", state: Error, text: "KeyDB", advice: "one master",
		server: claiming("role:active-replica")},
	{check: "service", state: Error, text: "active-active",
		server: claiming("module:name=ReJSON,ver=1", "module:name=crdt,ver=1")},

	{check: "role", state: OK, text: "master", on: "plain"},
	{check: "role", state: Error, text: "has lost its master", on: "orphaned"},
	{check: "role", state: Error, text: "grants no locks", advice: "ConnLifetime",
		server: func(t *testing.T) rueidis.Client {
			master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
			return redistest.StartReplica(t, master).Client(t)
		}},

	{check: "node", state: OK, text: "replies", on: "cluster"},
	{check: "node", state: Error, text: "does not reply", advice: "bring this node back",
		server: clustered(2, func(t *testing.T, c *redistest.Cluster) { c.Nodes[1].Kill(t) })},
	// From some servers the client of a cluster does not hear of nodes that have failed.
	{check: "node", state: Error, text: "has failed", advice: "bring this node back",
		server: unknownNode},

	{check: "cluster", state: OK, text: "each slot has a node",
		server: clustered(2, nothing, redistest.WithReplicas(1))},
	{check: "cluster", state: Warning, text: "no replica of 127.0.0.1:",
		server: clustered(1, nothing)},
	{check: "cluster", state: Warning, text: "the other nodes cannot reach",
		server: clustered(1, func(t *testing.T, c *redistest.Cluster) {
			impatient(t, c)
			c.Replicas[0].Kill(t)
			waitFor(t, c.Nodes[0], "fail", "CLUSTER", "NODES")
		}, redistest.WithReplicas(1))},
	{check: "cluster", state: Error, text: "16383 of 16384 slots",
		server: clustered(1, func(t *testing.T, c *redistest.Cluster) {
			c.Nodes[0].Do(t, "CLUSTER", "DELSLOTS", "7")
		})},
	{check: "cluster", state: Error, text: "cluster_state is fail",
		server: clustered(3, func(t *testing.T, c *redistest.Cluster) {
			impatient(t, c)
			c.Nodes[2].Kill(t)
			waitFor(t, c.Nodes[0], "cluster_state:fail", "CLUSTER", "INFO")
		})},
	{check: "cluster", state: Error, text: "may not ask this node", advice: "+cluster",
		server: func(t *testing.T) rueidis.Client {
			nodes := redistest.StartCluster(t, 1, redistest.WithUser("app", "secret", "~*", "&*",
				"+@all", "-cluster"))
			return nodes.Nodes[0].Client(t)
		}},
	{check: "cluster", state: Unknown, text: "NOPERM", advice: "CLUSTER INFO and CLUSTER NODES",
		server: faultyCluster(func(p *faultproxy.Proxy) {
			p.Reply("CLUSTER INFO", always, faultproxy.NoPerm("app", "cluster|info"))
		})},
	{check: "cluster", state: Unknown, text: "NOPERM", advice: "CLUSTER NODES",
		server: faultyCluster(func(p *faultproxy.Proxy) {
			p.Reply("CLUSTER NODES", always, faultproxy.NoPerm("app", "cluster|nodes"))
		})},

	{check: "slots", state: OK, text: "keys of several slots", on: "plain"},
	{check: "slots", state: Warning, text: "CROSSSLOT", advice: "cluster API", server: sharded},

	{check: "endpoint", state: OK, text: "ConnLifetime", on: "plain"},

	{check: "eviction", state: OK, text: "noeviction", on: "plain"},
	{check: "eviction", state: Warning, text: "volatile-lru can evict", advice: "noeviction",
		server: with("--maxmemory-policy", "volatile-lru")},
	{check: "eviction", state: Error, text: "allkeys-lru can evict", advice: "noeviction",
		server: with("--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb")},

	{check: "memory", state: OK, text: "maxmemory is not limited", on: "plain"},
	{check: "memory", state: OK, text: "% of maxmemory is used", server: with("--maxmemory", "1gb")},
	{check: "memory", state: Warning, text: "% of maxmemory is used. At",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t)
			server.Do(t, "SETRANGE", "large", "50000000", "x")
			var used int
			_, info, _ := strings.Cut(server.DoString(t, "INFO", "memory"), "used_memory:")
			_, err := fmt.Sscan(info, &used)
			require.NoError(t, err)
			server.Do(t, "CONFIG", "SET", "maxmemory", strconv.Itoa(used/95*100))
			return server.Client(t)
		}},
	{check: "memory", state: Error, text: "all of maxmemory", server: with("--maxmemory", "1")},

	{check: "persistence", state: OK, text: "always",
		server: with("--appendonly", "yes", "--appendfsync", "always")},
	{check: "persistence", state: Warning, text: "everysec", advice: "Fenced locks do not help",
		server: with("--appendonly", "yes", "--appendfsync", "everysec")},
	{check: "persistence", state: Warning, text: "appendfsync is no.",
		advice: "Fenced locks do not help", server: with("--appendonly", "yes", "--appendfsync", "no")},
	{check: "persistence", state: Warning, text: "only snapshots", advice: "Fenced locks do not help",
		server: set("save", "3600 1")},
	{check: "persistence", state: Error, text: "persistence is off",
		advice: "Fenced locks do not help", on: "plain"},
	{check: "persistence", state: Unknown, text: "NOPERM", advice: "appendonly is no",
		on: "-config"},
	{check: "persistence", state: Unknown, text: "NOPERM", advice: "that appendfsync is always",
		server: func(t *testing.T) rueidis.Client {
			return redistest.Start(t, redistest.WithAppendOnly(), redistest.WithUser("app", "secret",
				"~*", "&*", "+@all", "-config")).Client(t)
		}},

	{check: "disk", state: OK, text: "succeeded", on: "plain"},
	{check: "disk", state: Warning, text: "rewrite",
		server: claiming("aof_last_bgrewrite_status:err")},
	{check: "disk", state: Error, text: "append-only", server: claiming("aof_last_write_status:err")},
	{check: "disk", state: Error, text: "the last snapshot failed", advice: "log",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t, redistest.WithArgs("--dir", "/proc")) // nobody writes there
			_, _ = server.Call("BGSAVE")
			waitFor(t, server, "rdb_last_bgsave_status:err", "INFO", "persistence")
			return server.Client(t)
		}},

	{check: "replicas", state: OK, text: "0, none", on: "plain"},
	{check: "replicas", state: OK, text: "1, none",
		server: replicated(func(*testing.T, *redistest.Server, *redistest.Server) {})},
	{check: "replicas", state: Warning, text: "has not reported for",
		server: replicated(func(t *testing.T, master, replica *redistest.Server) {
			replica.Pause(t)
			waitFor(t, master, "lag=3", "INFO", "replication")
		})},
	{check: "replicas", state: Warning, text: "10.0.0.7:6379 is not in sync (wait_bgsave)",
		server: claiming("connected_slaves:1",
			"slave0:ip=10.0.0.7,port=6379,state=wait_bgsave,offset=0,lag=0")},
	{check: "replicas", state: Unknown, text: "unknown replica",
		server: claiming("connected_slaves:1", "slave0:banana")},

	{check: "failover", state: OK, text: "no replicas", on: "plain"},
	{check: "failover", state: OK, text: "SyncReplicas 1",
		server: replicated(func(t *testing.T, master, _ *redistest.Server) {
			master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
		})},
	{check: "failover", state: Warning, text: "min-replicas-to-write is 0", advice: "SyncReplicas 1",
		server: replicated(func(*testing.T, *redistest.Server, *redistest.Server) {})},
	{check: "failover", state: Error, text: "fewer replicas",
		server: with("--min-replicas-to-write", "1")},

	{check: "connections", state: OK, text: " of ", on: "plain"},
	{check: "connections", state: Warning, text: "9000 of maxclients (10000)",
		server: claiming("connected_clients:9000", "maxclients:10000")},
	{check: "connections", state: Error, text: "all of maxclients (1)",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t)
			client := server.Client(t)
			require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
			server.Do(t, "CONFIG", "SET", "maxclients", "1")
			return client
		}},

	{check: "timeout", state: OK, text: "stay open", on: "plain"},
	{check: "timeout", state: OK, text: "after 300 idle", server: with("--timeout", "300")},
	{check: "timeout", state: Warning, text: "after 20 idle", server: with("--timeout", "20")},
	{check: "timeout", state: Unknown, text: "NOPERM", on: "-config"},

	{check: "scripts", state: OK, text: "EVAL", on: "plain"},
	{check: "scripts", state: OK, text: "EVAL", on: "keyed"},
	{check: "scripts", state: Error, text: "eval", advice: "+eval", server: lacking("-eval")},

	{check: "time", state: OK, text: "may call TIME", on: "plain"},
	{check: "time", state: OK, text: "may call TIME", on: "keyed"},
	{check: "time", state: Warning, text: "may not call TIME", advice: "+time",
		on: "-time"},

	{check: "channels", state: OK, text: "PUBLISH reaches SUBSCRIBE", on: "plain"},
	{check: "channels", state: OK, text: "SPUBLISH reaches SSUBSCRIBE", on: "cluster"},
	{check: "channels", state: OK, text: "SPUBLISH reaches SSUBSCRIBE", // and nothing else
		server: clustered(2, func(t *testing.T, c *redistest.Cluster) {
			listens(t, c.Nodes[0], wire.ClassicChannels("redisson_lock__channel:{order:1}")...)
		})},
	{check: "channels", state: Warning, text: "holdfast_classic:redisson_lock__channel:{",
		advice: "&holdfast_classic:*:{", server: clustered(1, func(t *testing.T, c *redistest.Cluster) {
			c.Nodes[0].Do(t, "ACL", "SETUSER", "default", "resetchannels", "&redisson_*", "&holdfast_lock*")
		})},
	{check: "channels", state: OK, text: "redisson_rwlock:{order:1}",
		server: clustered(2, func(t *testing.T, c *redistest.Cluster) {
			listens(t, c.Nodes[0], "redisson_rwlock:{order:1}")
		})},
	{check: "channels", state: Warning, text: "publish", advice: "+publish",
		server: lacking("-publish")},
	{check: "channels", state: Warning, text: "subscribe", advice: "+subscribe",
		server: lacking("-subscribe")},
	{check: "channels", state: Warning, text: "did not arrive",
		server: faulty((*faultproxy.Proxy).DropMessages)},
	{check: "channels", state: Warning, text: "no sharded channels", advice: "Redis 7",
		server: faultyCluster(func(p *faultproxy.Proxy) {
			p.Reply("PUBSUB SHARDNUMSUB", always, "ERR Unknown subcommand or wrong number of arguments")
		})},
	{check: "channels", state: Error, text: "NOPERM", advice: "+pubsub",
		server: faultyCluster(func(p *faultproxy.Proxy) {
			p.Reply("PUBSUB SHARDNUMSUB", always, faultproxy.NoPerm("app", "pubsub"))
		})},

	{check: "clock", state: OK, text: "differ by less than", on: "plain"},
	{check: "clock", state: Warning, text: "differ by", advice: "NTP",
		server: faulty(func(p *faultproxy.Proxy) { p.Answer("TIME", always, "1700000000", "5") })},
	{check: "clock", state: Unknown, text: "NOPERM", on: "-time"},
	{check: "clock", state: Unknown, text: "unexpected reply to TIME",
		server: faulty(func(p *faultproxy.Proxy) { p.Answer("TIME", always, "1", "2", "3") })},

	{check: "round-trip", state: OK, text: "s", again: true, on: "plain"},
	{check: "round-trip", state: Warning, text: "ms", advice: "closer", again: true,
		server: faulty(func(p *faultproxy.Proxy) { p.Delay(20 * time.Millisecond) })},
	{check: "round-trip", state: Error, text: "too late", again: true,
		server: faulty(func(p *faultproxy.Proxy) { p.Delay(600 * time.Millisecond) })},
	{check: "round-trip", state: Unknown, text: "NOPERM",
		server: faulty(func(p *faultproxy.Proxy) {
			p.Reply("PING", always, faultproxy.NoPerm("app", "ping"))
		})},

	// On a busy machine any script may be slow.
	{check: "slowlog", state: OK, text: "no slow scripts",
		server: with("--slowlog-log-slower-than", "-1")},
	{check: "slowlog", state: Warning, text: "1 slow scripts in the last hour",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t)
			server.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", "0")
			server.Do(t, "EVAL", "return 1", "0")
			server.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", "-1")
			return server.Client(t)
		}},
	{check: "slowlog", state: Warning, text: "DEBUG took 1.",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t, redistest.WithArgs("--enable-debug-command", "yes"))
			server.Do(t, "DEBUG", "SLEEP", "1.1")
			return server.Client(t)
		}},
	{check: "slowlog", state: OK, text: "no slow scripts in the last hour",
		server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t, redistest.WithArgs("--slowlog-log-slower-than", "0"))
			server.Do(t, "EVAL", "return 1", "0")
			server.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", "-1")
			client, proxy := through(t, server)
			later := time.Now().Add(2 * time.Hour).Unix()
			proxy.Answer("TIME", always, strconv.FormatInt(later, 10), "0")
			return client
		}},
	{check: "slowlog", state: Unknown, text: "NOPERM", server: lacking("-slowlog")},
	{check: "slowlog", state: Unknown, text: "unexpected reply to SLOWLOG",
		server: faulty(func(p *faultproxy.Proxy) { p.Answer("SLOWLOG", always, "a", "b") })},

	{check: "leases", state: OK, text: "no lock among the first 100000 keys", on: "plain"},
	{check: "leases", state: Warning, text: `never expire, such as "stuck\x1b"`,
		advice: "holdfast unlock", server: func(t *testing.T) rueidis.Client {
			server := redistest.Start(t)
			server.Do(t, "HSET", "stuck\x1b", "7e7cbd6e-0d4a-4a7e-9c4f-3e8d6b0a1f11:1", "1")
			return server.Client(t)
		}},
	{check: "leases", state: Unknown, text: "NOPERM", server: lacking("-scan")},
}

// lockSights returns those of the lines about locks.
func lockSights() (all []sight) {
	for _, line := range []string{"lock", "fair", "fenced", "read", "write"} {
		all = append(all,
			sight{check: "locks", line: line, state: OK, text: "acquired, renewed", on: "plain"},
			sight{check: "locks", line: line, state: OK, text: "acquired, renewed",
				on: "cluster"},
			sight{check: "locks", line: line, state: Error, text: "rejected", advice: "grant +hset",
				on: "-hset"},
			sight{check: "locks", line: line, state: Error, text: "READONLY", advice: "master",
				on: "orphaned"},
			sight{check: "locks", line: line, state: Warning, text: "late", advice: "grant &redis",
				on: "resetchannels"})
	}
	return append(all,
		sight{check: "locks", line: "hand-over", state: OK, text: "to a waiter", on: "plain"},
		sight{check: "locks", line: "hand-over", state: Warning, text: "to all waiters",
			advice: "grant +zpopmin to this user, or turn", server: lacking("-zpopmin")},
		sight{check: "locks", line: "hand-over", state: Warning, text: "to all waiters",
			advice: "grant +time to this user, or turn", on: "-time"},
		// A service that has TIME, but not in scripts.
		sight{check: "locks", line: "hand-over", state: Warning, text: "may not call TIME",
			advice: "option HandOver", server: timeless},
		sight{check: "locks", line: "hand-over", state: Warning, text: "may not call PUBSUB",
			advice: "option HandOver", server: with("--rename-command", "PUBSUB", "")},
		sight{check: "locks", line: "hand-over", state: Unknown, text: "that hand over have a problem",
			on: "-hset"},
		sight{check: "locks", line: "lock", state: Error, text: "failed", again: true, server: flushed})
}

// sharded returns a server that looks like a single node, and is a cluster: here it is one of a
// single node that is not asked for its slots, elsewhere one behind a proxy.
func sharded(t *testing.T) rueidis.Client {
	option := redistest.StartCluster(t, 1).Nodes[0].ClientOption()
	option.ForceSingleClient = true
	return connected(t, option)
}

// keyed returns a server that refuses scripts without keys, as ElastiCache Serverless does.
func keyed(t *testing.T) rueidis.Client {
	return redistest.Start(t, redistest.WithScripts(luashim.Keyed)).Client(t)
}

// timeless returns a server that refuses scripts the command TIME, whatever the rights of a user.
func timeless(t *testing.T) rueidis.Client {
	return faulty(func(p *faultproxy.Proxy) {
		p.Reply("return redis.call('TIME')", always, "ERR This Redis command is not allowed from script")
	})(t)
}

// flushed returns a server that loses its keys all the time.
func flushed(t *testing.T) rueidis.Client {
	server := redistest.Start(t)
	ended := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ended:
				return
			default:
				_, _ = server.Call("FLUSHALL")
			}
		}
	}()
	t.Cleanup(func() {
		close(ended)
		<-done
	})
	return server.Client(t)
}

func TestEveryLineIsSeenInEachOfItsStates(t *testing.T) {
	t.Parallel()
	all := append(slices.Clone(sights), lockSights()...)
	for check, advice := range unasked {
		all = append(all, sight{check: check, state: Unknown, text: "NOPERM", advice: advice,
			on: "-info"})
	}
	byServer := map[string][]sight{}
	for i, s := range all {
		if s.line == "" {
			s.line = s.check
		}
		name := s.on
		if s.server != nil {
			name = fmt.Sprint(i, " ", s.line, " ", s.text)
		}
		byServer[name] = append(byServer[name], s)
	}
	for name, sights := range byServer {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := sights[0].server
			if start == nil {
				start = shared[name]
			}
			server, found := start(t), map[string][]Finding{}
			for _, s := range sights {
				if found[s.check] == nil {
					found[s.check] = examined(t, server, s.check, Options{Endpoint: "redis.example.com"})
				}
				for try := 0; s.again && try < 20; try++ {
					if slices.ContainsFunc(found[s.check], s.isIn) {
						break
					}
					found[s.check] = examined(t, server, s.check, Options{})
				}
				require.True(t, slices.ContainsFunc(found[s.check], s.isIn), "%s %s is not in %+v",
					s.line, s.text, found[s.check])
			}
		})
	}
}
