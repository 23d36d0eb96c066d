package chaos

import (
	"time"

	"holdfast/integration/history"
)

// Scenarios are what is played by make chaos.
var Scenarios = []Scenario{
	{
		Name: "network", Topology: Single, Durable: true, Kinds: allKinds, Peace: time.Second,
		Faults: []Fault{Partition, RequestsLost, RepliesLost, RepliesLate, MessagesLost, Slow, Reset, Refused, CutReplies, Refusals},
	},
	{
		Name: "processes and servers", Topology: Single, Durable: true, Kinds: allKinds, Peace: time.Second,
		Faults: []Fault{ProcessStopped, ProcessKilled, ServerStopped, ServerRestarted, ScriptsFlushed, ClientsKilled, CutReplies},
	},
	{
		Name: "cluster", Topology: Cluster, Kinds: allKinds, Peace: time.Second,
		Faults: []Fault{SlotMoved, Partition, Reset, CutReplies, ProcessKilled, ServerStopped},
	},
	{
		Name: "servers that forget", Topology: Forgetful, Kinds: allKinds, Peace: time.Second,
		Faults: []Fault{ServerEmptied, Flushed, ExpiryCut, ProcessStopped, CutReplies},
	},
	{
		Name: "quorum", Topology: Masters, Kinds: []history.Kind{history.Quorum}, Peace: time.Second,
		Faults: []Fault{MinorityStopped, MinorityEmptied, Partition, RepliesLost, Reset, ProcessStopped, ProcessKilled, CutReplies},
	},
}
