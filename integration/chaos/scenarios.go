package chaos

import (
	"time"

	"holdfast/integration"
	"holdfast/integration/history"
)

// durable servers have all their data after a restart.
var durable = []integration.Variant{integration.AppendOnly}

// Scenarios are all there are.
var Scenarios = []Scenario{
	{
		// Without faults there are no excuses.
		Name: "calm", Topology: integration.Single, OnlyVirtual: true,
		Kinds: allKinds, Peace: time.Second,
		Latency: time.Millisecond,
	},
	{
		// The last waiter of a burst is woken by the one before, or not at all.
		Name: "bursts", Topology: integration.Single, OnlyVirtual: true,
		Kinds: allKinds, Peace: time.Second,
		Processes: 4, Workers: 1, Burst: 1500 * time.Millisecond, Copies: 2,
		Latency: 40 * time.Millisecond, Lease: 5 * time.Second,
	},
	{
		// One lock that the server refuses to renew costs no other lock its renewal.
		Name: "forbidden key", Topology: integration.Single, OnlyVirtual: true, Costs: 2,
		Kinds: []history.Kind{history.Plain},
		Peace: time.Second / 4, Processes: 2, Kept: 5,
		Faults: []Fault{KeyForbidden},
	},
	{
		// Nor does a server that refuses commands for several locks, and so every batch.
		Name: "sharded", Topology: integration.Sharded, Kinds: allKinds, Peace: time.Second,
		Latency: time.Millisecond, Processes: 2, Kept: 5, Shortest: 5 * time.Second,
	},
	{
		// Acquisitions that wait for a replica leave room for the renewals of what is held.
		Name: "stopped replica", Topology: integration.Replicated,
		Kinds: []history.Kind{history.Plain}, Peace: time.Second / 4, SyncReplicas: 1,
		Command:   3 * time.Second,
		Processes: 1, Workers: 1, Kept: 5, Storm: 60, Pool: 16, Shortest: 6 * time.Second,
		Faults: []Fault{ReplicaStopped},
	},
	{
		// The batches of thousands of locks do not wait for each other's replies.
		Name: "thousands far away", Topology: integration.Single, OnlyVirtual: true, Costs: 30,
		Kinds: []history.Kind{history.Plain}, Peace: time.Second, Command: 2 * time.Second,
		Latency: 120 * time.Millisecond, Processes: 1, Workers: 1, Kept: 1200,
		Lease: 2500 * time.Millisecond, Far: true,
	},
	{
		// A renewal counts whenever its reply comes.
		Name: "late replies", Topology: integration.Single, OnlyVirtual: true,
		// A MultiLock releases what it has when its wait is over, and that takes a round trip.
		Kinds: []history.Kind{history.Fenced}, Peace: time.Second, Command: 3 * time.Second,
		Latency: 400 * time.Millisecond, Processes: 2, Workers: 1, Kept: 5,
		Lease: 4 * time.Second, Far: true,
	},
	{
		// An address that now means another server, and connections that still reach the old one.
		Name: "moved endpoint", Topology: integration.Replicated,
		Kinds: []history.Kind{history.Plain, history.Fair, history.Fenced}, Peace: time.Second / 4,
		Processes: 2, Workers: 2, Kept: 5, Shortest: 6 * time.Second,
		Faults: []Fault{EndpointMoved},
	},
	{
		// The first command on a connection that was closed meanwhile is sent again.
		Name: "idle connections", Topology: integration.Single, OnlyVirtual: true, Costs: 2,
		Kinds: []history.Kind{history.Plain, history.Fenced}, Peace: time.Millisecond,
		Processes: 3, Workers: 1, Burst: 600 * time.Millisecond,
		Faults: []Fault{IdleClosed},
	},
	{
		// What callers do is met by losses, closed clients and late replies in any order.
		Name: "wanderers", Topology: integration.Single, OnlyVirtual: true,
		Kinds: allKinds, Peace: time.Second,
		Wander: true, Processes: 4, Workers: 2, Pace: time.Second,
		Faults: []Fault{Deleted, ClientClosed, CutReplies, RepliesLate, Partition, ProcessKilled},
	},
	{
		Name: "network", Topology: integration.Single, Variants: durable,
		Durable: true, Kinds: allKinds, Peace: time.Second,
		Faults: []Fault{Partition, RequestsLost, RepliesLost, RepliesLate, MessagesLost, Slow,
			Reset, Refused, CutReplies, Refusals},
	},
	{
		Name: "processes and servers", Topology: integration.Single, Variants: durable,
		Durable: true, Kinds: allKinds,
		Peace: time.Second, Quiet: true,
		Faults: []Fault{ProcessStopped, ProcessKilled, ServerStopped, ServerRestarted,
			ScriptsFlushed, ClientsKilled, CutReplies},
	},
	{
		Name: "cluster", Topology: integration.Cluster, Kinds: allKinds,
		Peace: time.Second, Quiet: true,
		Faults: []Fault{SlotMoved, HandedOver, Partition, Reset, CutReplies, ProcessKilled,
			ServerStopped},
	},
	{
		// Many callers leave at once. The waiters get their locks all the same, also after a fault.
		Name: "impatience", Topology: integration.Single, OnlyVirtual: true, Costs: 2,
		Kinds: []history.Kind{history.Plain, history.Fair, history.Fenced, history.Write},
		Peace: time.Second, Calm: 6 * time.Second, Lease: time.Second, Wait: 6 * time.Second,
		Processes: 4, Workers: 6, Impatient: 4,
		Faults: []Fault{ProcessStopped, ProcessKilled, ServerStopped},
	},
	{
		// A lock whose holder died goes to the next waiter when its lease ends.
		Name: "deaths", Topology: integration.Single, OnlyVirtual: true,
		Kinds: []history.Kind{history.Plain, history.Fair, history.Fenced, history.Write},
		Peace: time.Second, Calm: 6 * time.Second, Processes: 3, Workers: 6,
		Burst: 3 * time.Second, Wait: 8 * time.Second, Lease: 5 * time.Second,
		Abandoned: time.Second, Faults: []Fault{HolderKilled.Within(0.2)},
	},
	{
		// The living are served in their order, whatever happens to one among them.
		Name: "queue", Topology: integration.Single, OnlyVirtual: true, Costs: 2,
		Kinds: []history.Kind{history.Fair},
		Peace: time.Second, Processes: 4, Victims: 1, Workers: 2,
		Faults: []Fault{ProcessStopped, ProcessKilled, Partition, Reset, CutReplies},
	},
	{
		Name: "failover", Topology: integration.Sentinel, Kinds: allKinds,
		Peace: time.Second, Quiet: true,
		Faults: []Fault{Failover, MasterKilled, Partition, MessagesLate, CutReplies, ProcessKilled},
	},
	{
		Name: "servers that forget", Topology: integration.Single, Kinds: allKinds,
		Peace: time.Second, Quiet: true,
		Faults: []Fault{ServerEmptied, Flushed, ExpiryCut, ProcessStopped, CutReplies},
	},
	{
		Name: "quorum", Costs: 4, Topology: integration.Masters(5), Kinds: []history.Kind{history.Quorum},
		Peace: time.Second, Quiet: true,
		Faults: []Fault{MinorityStopped, MinorityEmptied, Partition, RepliesLost, Reset,
			ProcessStopped, ProcessKilled, CutReplies},
	},
	{
		// A process passes its lock on to its next caller without a word to Redis, see rlock/turn.go.
		Name: "hot lock", Topology: integration.Single, OnlyVirtual: true, Costs: 4,
		Kinds: []history.Kind{history.Plain, history.Write}, Peace: time.Second, Quiet: true,
		Processes: 2, Workers: 6, Impatient: 2, Moment: 20 * time.Millisecond,
		Pace:   5 * time.Millisecond,
		Faults: []Fault{Flushed, ProcessKilled, ProcessStopped, Partition, CutReplies},
	},
}
