package chaos

import (
	"slices"
	"time"

	"holdfast/internal/faultproxy"
)

// The faults of the network between one process and the servers. Lasting ones exceed a lease now
// and then.
var (
	// Partition cuts a process off from all servers, both ways.
	Partition = Fault{Name: "partition", Delays: true, lasts: 2, settles: command,
		begin: onLinks((*faultproxy.Proxy).BlackHole)}

	// RequestsLost drops the requests of a process. Replies arrive.
	RequestsLost = Fault{Name: "requests lost", lasts: 1, settles: 2 * command,
		begin: onLinks((*faultproxy.Proxy).DropRequests)}

	// RepliesLost drops the replies to a process: everything is executed and nothing known.
	RepliesLost = Fault{Name: "replies lost", lasts: 1, settles: 2 * command,
		begin: onLinks((*faultproxy.Proxy).DropReplies)}

	// RepliesLate holds the replies to a process and delivers them later.
	RepliesLate = Fault{Name: "replies late", lasts: 1, settles: command,
		begin: onLinks((*faultproxy.Proxy).HoldReplies)}

	// MessagesLost drops published messages only: waiters have to poll.
	MessagesLost = Fault{Name: "messages lost", lasts: 1, settles: pollInterval,
		begin: onLinks((*faultproxy.Proxy).DropMessages)}

	// MessagesLate holds published messages and delivers them later: a waiter was granted locks
	// that it has lost again.
	MessagesLate = Fault{Name: "messages late", lasts: 2, settles: command,
		begin: onLinks((*faultproxy.Proxy).HoldMessages)}

	// AllMessagesLate does so to all processes at once: one after the other is granted the lock
	// without hearing of it, and then all hear of it.
	AllMessagesLate = Fault{Name: "all messages late", lasts: 2, settles: command,
		begin: func(r *run) ([]string, func()) {
			for _, s := range r.slots {
				for _, link := range s.links {
					link.HoldMessages()
				}
			}
			return nil, func() {
				for _, s := range r.slots {
					r.restore(s)
				}
			}
		}}

	// Slow delays everything.
	Slow = Fault{Name: "slow network", lasts: 1, settles: command,
		begin: onLinks(func(p *faultproxy.Proxy) { p.Delay(20 * time.Millisecond) })}

	// Reset breaks all connections of a process, which may reconnect at once.
	Reset = Fault{Name: "connections reset", settles: command,
		begin: onLinks(func(p *faultproxy.Proxy) { p.Reset() })}

	// Refused breaks all connections of a process and refuses new ones.
	Refused = Fault{Name: "connections refused", lasts: 1, settles: command,
		begin: func(r *run) ([]string, func()) {
			s := r.victim()
			for _, link := range s.links {
				link.Refuse()
				link.Reset()
			}
			return []string{s.name()}, func() {
				for _, link := range s.links {
					r.check(link.Accept())
				}
			}
		}}

	// CutReplies breaks connections of a process between the execution of a script and its reply.
	CutReplies = Fault{Name: "replies cut", lasts: 1, settles: 2 * command,
		begin: func(r *run) ([]string, func()) {
			s := r.victim()
			var cuts []*faultproxy.Fault
			for _, link := range s.links {
				cuts = append(cuts, link.CutReply("EVALSHA", 1+r.dice.IntN(6)))
			}
			return []string{s.name()}, func() {
				for _, cut := range cuts {
					cut.End()
				}
			}
		}}

	// Refusals has a server reply to scripts with errors instead of executing them, such as those
	// of a server that loads its data or is out of memory.
	Refusals = Fault{Name: "error replies", lasts: 1, settles: command,
		begin: func(r *run) ([]string, func()) {
			s := r.victim()
			replies := []string{faultproxy.Loading, faultproxy.Busy, faultproxy.ClusterDown,
				faultproxy.ReadOnly, faultproxy.OutOfMemory,
				faultproxy.NoPerm("default", "evalsha")}
			reply := replies[r.dice.IntN(len(replies))]
			var injected []*faultproxy.Fault
			for _, link := range s.links {
				injected = append(injected, link.Reply("EVALSHA", 1+r.dice.IntN(20), reply))
			}
			return []string{s.name()}, func() {
				for _, fault := range injected {
					fault.End()
				}
			}
		}}
)

// onLinks returns a fault's begin that changes all links of one process, and restores them.
func onLinks(do func(*faultproxy.Proxy)) func(*run) ([]string, func()) {
	return func(r *run) ([]string, func()) {
		s := r.victim()
		for _, link := range s.links {
			do(link)
		}
		return []string{s.name()}, func() { r.restore(s) }
	}
}

// restore restores the links of a process.
func (r *run) restore(s *slot) {
	for _, link := range slices.Concat(s.before, s.links) {
		r.check(link.Heal())
		link.Delay(r.scenario.Latency)
	}
}
