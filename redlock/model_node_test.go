package redlock_test

import "pgregory.net/rapid"

// clock shows offset at the beginning, and runs at rate millionths of the right speed.
type clock struct{ offset, rate int64 }

// at returns what the clock shows, in microseconds.
func (c clock) at(now int64) int64 { return c.offset + now*c.rate/1_000_000 }

// when returns the first instant at which the clock shows at least that.
func (c clock) when(shows int64) int64 {
	return (max(0, shows-c.offset)*1_000_000 + c.rate - 1) / c.rate
}

// modelNode is one master.
type modelNode struct {
	clock   clock
	started int64 // by its clock, in milliseconds
	data    nodeData
	past    []nodeData // what it may come back with
}

// nodeData is what a node forgets, if it forgets.
type nodeData struct {
	owner string
	until int64 // by its clock, in milliseconds; until then the owner holds it
	epoch int64 // since when it has its data; 0 if not asked since
}

func (n *modelNode) ms(now int64) int64 { return n.clock.at(now) / 1000 }

// counted reports whether the node grants locks to a new owner.
func (n *modelNode) counted(p *protocol, now int64) bool {
	ms := n.ms(now)
	if !p.fsyncAlways && !p.noDelay {
		uptime := ms/1000 - n.started/1000 // in whole seconds, as in Redis
		wait := int64(p.delayed()) - uptime*1000
		if !p.noSecond {
			wait += 1000
		}
		if wait > 0 {
			return false
		}
	}
	if p.epoch {
		if n.data.epoch == 0 {
			n.data.epoch = ms
		}
		return n.data.epoch+int64(p.delayed()) <= ms
	}
	return true
}

// execute executes a request, and returns the reply.
func (n *modelNode) execute(p *protocol, r *request, now int64) bool {
	ms := n.ms(now)
	if ms >= n.data.until {
		n.data.owner = ""
	}
	before := n.data
	mine := n.data.owner == r.owner
	yes := false
	switch r.kind {
	case acquires:
		if yes = (mine || n.data.owner == "") && n.counted(p, now); yes {
			n.data.owner, n.data.until = r.owner, ms+r.lease
			if mine {
				n.data.until = max(n.data.until, before.until)
			}
		}
	case renews:
		if yes = mine; yes {
			n.data.until = max(n.data.until, ms+r.lease)
		}
	case releases:
		if yes = mine; yes {
			n.data.owner = ""
		}
	}
	if before != n.data {
		n.past = append(n.past, before)
	}
	return yes
}

// restart loses everything, or what came after some moment, or nothing.
func (n *modelNode) restart(t *rapid.T, p *protocol, now int64) {
	n.started = n.ms(now)
	if p.fsyncAlways {
		return
	}
	switch kept := among(t, 4); {
	case kept < 2:
		n.data = nodeData{}
	case kept == 2 && len(n.past) > 0:
		n.data = n.past[among(t, len(n.past))]
	}
}
