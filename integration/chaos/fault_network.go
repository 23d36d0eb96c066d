package chaos

import (
	"time"

	"holdfast/internal/faultproxy"
)

// The faults of the network between one process and the servers. Lasting ones go on for longer than a lease now and then.
var (
	// Partition cuts a process off from all servers, and both ways.
	Partition = Fault{Name: "partition", Delays: true, lasts: 2, settles: command, begin: onLinks((*faultproxy.Proxy).BlackHole)}

	// RequestsLost swallows what a process says. Servers are heard.
	RequestsLost = Fault{Name: "requests lost", lasts: 1, settles: 2 * command, begin: onLinks((*faultproxy.Proxy).DropRequests)}

	// RepliesLost swallows what servers say to a process, so that all is done and nothing is known.
	RepliesLost = Fault{Name: "replies lost", lasts: 1, settles: 2 * command, begin: onLinks((*faultproxy.Proxy).DropReplies)}

	// RepliesLate keeps what servers say to a process, and delivers it later.
	RepliesLate = Fault{Name: "replies late", lasts: 1, settles: command, begin: onLinks((*faultproxy.Proxy).HoldReplies)}

	// MessagesLost loses what is published, and nothing else: waiters have to look for themselves.
	MessagesLost = Fault{Name: "messages lost", lasts: 1, settles: longestPark, begin: onLinks((*faultproxy.Proxy).DropMessages)}

	// MessagesLate keeps what is published, and delivers it later: locks that were given to a waiter, and that it has lost again.
	MessagesLate = Fault{Name: "messages late", lasts: 2, settles: command, begin: onLinks((*faultproxy.Proxy).HoldMessages)}

	// AllMessagesLate does so to all processes at once: one after the other is given the lock and does not hear of it, and then
	// all of them do.
	AllMessagesLate = Fault{Name: "all messages late", lasts: 2, settles: command, begin: func(r *run) ([]string, func()) {
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
	Slow = Fault{Name: "slow network", lasts: 1, settles: command, begin: onLinks(func(p *faultproxy.Proxy) { p.Delay(20 * time.Millisecond) })}

	// Reset breaks all connections of a process, which may connect again at once.
	Reset = Fault{Name: "connections reset", settles: command, begin: onLinks(func(p *faultproxy.Proxy) { p.Reset() })}

	// Refused breaks all connections of a process and keeps it from connecting again.
	Refused = Fault{Name: "connections refused", lasts: 1, settles: command, begin: func(r *run) ([]string, func()) {
		s := r.victim()
		for _, link := range s.links {
			link.Refuse()
			link.Reset()
		}
		return []string{s.process.name}, func() {
			for _, link := range s.links {
				r.check(link.Accept())
			}
		}
	}}

	// CutReplies breaks connections of a process between the execution of a script and its reply.
	CutReplies = Fault{Name: "replies cut", lasts: 1, settles: 2 * command, begin: func(r *run) ([]string, func()) {
		s := r.victim()
		var cuts []*faultproxy.Fault
		for _, link := range s.links {
			cuts = append(cuts, link.CutReply("EVALSHA", 1+r.dice.IntN(6)))
		}
		return []string{s.process.name}, func() {
			for _, cut := range cuts {
				cut.End()
			}
		}
	}}

	// Refusals has a server answer scripts with errors instead of executing them, such as it gives while it loads its data
	// or has no memory left.
	Refusals = Fault{Name: "error replies", lasts: 1, settles: command, begin: func(r *run) ([]string, func()) {
		s := r.victim()
		answers := []string{faultproxy.Loading, faultproxy.Busy, faultproxy.ClusterDown, faultproxy.ReadOnly, faultproxy.OutOfMemory, faultproxy.NoPerm("default", "evalsha")}
		answer := answers[r.dice.IntN(len(answers))]
		var given []*faultproxy.Fault
		for _, link := range s.links {
			given = append(given, link.Reply("EVALSHA", 1+r.dice.IntN(20), answer))
		}
		return []string{s.process.name}, func() {
			for _, g := range given {
				g.End()
			}
		}
	}}
)

// onLinks does something to all links of one process, and undoes it.
func onLinks(do func(*faultproxy.Proxy)) func(*run) ([]string, func()) {
	return func(r *run) ([]string, func()) {
		s := r.victim()
		for _, link := range s.links {
			do(link)
		}
		return []string{s.process.name}, func() { r.restore(s) }
	}
}

// restore has the links of a process be as they were.
func (r *run) restore(s *slot) {
	for _, link := range s.links {
		r.check(link.Heal())
		link.Delay(r.scenario.Latency)
	}
}
