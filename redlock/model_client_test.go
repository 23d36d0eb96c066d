package redlock_test

import (
	"slices"
	"strconv"
)

// modelClient is one process that wants the lock.
type modelClient struct {
	name        string
	clock       clock
	acquisition *modelAcquisition // nil before the first
}

// modelAcquisition is the client's acquisition: requested, held, or being released.
type modelAcquisition struct {
	client *modelClient
	phase  modelPhase
	lease  int64
	parts  []modelPart
	broken bool // another has held the lock since
}

type modelPhase uint8

const (
	wanting modelPhase = iota
	held
	ended
)

// modelPart is the part of an acquisition on one node.
type modelPart struct {
	question *request // without reply yet, or nil
	granted  bool
	owner    string
	deadline int64 // by the clock of the client
}

// asks reports whether a request has no reply yet.
func (t *modelAcquisition) asks() bool {
	return slices.ContainsFunc(t.parts, func(p modelPart) bool { return p.question != nil })
}

func (w *world) newName(c *modelClient) string {
	w.names++
	return c.name + strconv.Itoa(w.names)
}

func (w *world) send(r *request) *request {
	r.sent = r.from.client.clock.at(w.now)
	w.requests = append(w.requests, r)
	return r
}

func (w *world) release(t *modelAcquisition, node int, owner string) {
	w.send(&request{kind: releases, from: t, node: node, owner: owner, given: true})
}

func (w *world) ask(t *modelAcquisition, node int, owner string) {
	t.parts[node] = modelPart{owner: owner}
	t.parts[node].question = w.send(
		&request{kind: acquires, from: t, node: node, owner: owner, lease: t.lease})
}

// begin has a client ask nodes for a lock that it does not hold.
func (w *world) begin(c *modelClient, lease int64, nodes ...int) {
	c.acquisition = &modelAcquisition{client: c, lease: lease,
		parts: make([]modelPart, len(w.nodes))}
	owner := w.newName(c)
	w.tell("%s asks nodes %v as %s, lease %d", c.name, nodes, owner, c.acquisition.lease)
	for _, i := range nodes {
		w.ask(c.acquisition, i, owner)
	}
}

// deadline returns until when the client trusts what it was granted.
func (w *world) deadline(r *request) int64 {
	from := r.sent
	if w.fromReply {
		from = r.from.client.clock.at(w.now)
	}
	drift := r.lease/100 + 2
	if w.noDrift {
		drift = 0
	}
	return from + (r.lease-drift)*1000
}

// receive is what the client does with a reply.
func (w *world) receive(r *request) {
	r.given = true
	t, part := r.from, &r.from.parts[r.node]
	now := t.client.clock.at(w.now)
	switch {
	case r.kind == acquires && part.question == r && t.phase != ended:
		part.question = nil
		if !r.yes {
			return
		}
		if w.deadline(r) <= now {
			w.release(t, r.node, r.owner)
			return
		}
		if t.phase == held && !w.believes(t) && !w.joinsLate {
			w.end(t) // it was lost before, but not reported
			w.release(t, r.node, r.owner)
			return
		}
		part.granted, part.deadline = true, w.deadline(r)
	case r.kind == acquires && r.yes:
		w.release(t, r.node, r.owner) // too late to be wanted
	case r.kind == renews && part.granted && part.owner == r.owner && now < part.deadline:
		if r.yes {
			part.deadline = max(part.deadline, w.deadline(r))
		} else {
			part.granted = false
		}
	}
}

// giveUpOn is what the client does when the outcome of a request is unknown: it may still arrive.
func (w *world) giveUpOn(r *request) {
	r.given = true
	part := &r.from.parts[r.node]
	if r.kind != acquires {
		return
	}
	if part.question == r {
		part.question = nil
	}
	w.tell("%s gives up on node %d as %s", r.from.client.name, r.node, r.owner)
	w.release(r.from, r.node, r.owner)
}

// decide makes a quorum a hold.
func (w *world) decide(t *modelAcquisition) {
	if t.phase == wanting && w.trusts(t) {
		t.phase = held
		w.tell("%s holds it", t.client.name)
	}
}

// lapse ends the parts whose deadline is over, and the acquisition without enough of them.
func (w *world) lapse(t *modelAcquisition) {
	now, left := t.client.clock.at(w.now), 0
	for i := range t.parts {
		part := &t.parts[i]
		if part.granted && part.deadline <= now {
			part.granted = false
			w.release(t, i, part.owner)
		}
		if part.granted {
			left++
		}
	}
	if t.phase == held && left < w.quorum() {
		w.end(t)
	}
}

// renew renews those of the parts that have not ended.
func (w *world) renew(t *modelAcquisition, parts []int) {
	now := t.client.clock.at(w.now)
	for _, i := range parts {
		if part := &t.parts[i]; part.granted && now < part.deadline {
			w.send(&request{kind: renews, from: t, node: i, owner: part.owner, lease: t.lease})
		}
	}
}

// join asks the nodes that are missing.
func (w *world) join(t *modelAcquisition) {
	for i := range t.parts {
		part := &t.parts[i]
		if t.phase != held || part.granted || part.question != nil {
			continue
		}
		owner := part.owner
		if !w.sameName || owner == "" {
			owner = w.newName(t.client)
		}
		w.tell("%s asks node %d to join as %s", t.client.name, i, owner)
		w.ask(t, i, owner)
	}
}

// end releases all parts.
func (w *world) end(t *modelAcquisition) {
	if t.phase == ended {
		return
	}
	w.tell("%s is through", t.client.name)
	t.phase = ended
	for i := range t.parts {
		if part := &t.parts[i]; part.granted || part.question != nil {
			w.release(t, i, part.owner)
		}
	}
}

// crash ends a process. What it has sent is still on its way.
func (w *world) crash(c *modelClient) {
	w.tell("%s crashes", c.name)
	if c.acquisition != nil {
		c.acquisition.phase = ended
	}
	for _, r := range w.requests {
		r.given = r.given || r.from.client == c
	}
}

// unanswered returns the requests whose sender still waits: those that were executed, or those that
// were not.
func (w *world) unanswered(carriedOut bool) []*request {
	return slices.DeleteFunc(slices.Clone(w.requests),
		func(r *request) bool { return r.given || r.answered != carriedOut })
}
