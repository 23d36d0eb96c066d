package faultproxy

import "time"

// HoldRequests holds what clients send until Pass, and lets replies pass.
func (p *Proxy) HoldRequests() { p.requests.gate.shut() }

// HoldReplies lets requests pass and holds what the target sends until Pass.
func (p *Proxy) HoldReplies() { p.replies.gate.shut() }

// BlackHole holds everything in both directions until Pass. Connections are accepted by the proxy,
// and get no further.
func (p *Proxy) BlackHole() {
	p.requests.gate.shut()
	p.replies.gate.shut()
}

// BlackHoleNew accepts new connections and does nothing with them until Pass. Existing ones stay.
func (p *Proxy) BlackHoleNew() { p.fresh.shut() }

// DropRequests loses what clients send until Pass, while connections stay up and replies pass: a
// partition in one direction. A connection that has lost something carries nothing more in that
// direction, and is reset by Pass: TCP never continues after a gap, and the next reply would be
// taken for that to the lost request.
func (p *Proxy) DropRequests() { p.drop(&p.requests) }

// DropReplies is DropRequests for what the target sends: requests are executed, and their replies
// are lost.
func (p *Proxy) DropReplies() { p.drop(&p.replies) }

func (p *Proxy) drop(d *direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.drops = true
}

// loses reports whether what a link would send now is lost, and notes in gap that something was.
func (p *Proxy) loses(d *direction, gap *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	*gap = *gap || d.drops
	return *gap
}

// fate is what happens to messages.
type fate int

const (
	passed fate = iota
	held
	dropped
)

// HoldMessages holds until Pass what the target sends unrequested: messages of pub/sub,
// invalidations, the end of a sharded subscription, reports of MONITOR. Replies pass, confirmations
// of subscriptions included, and may overtake them.
func (p *Proxy) HoldMessages() { p.stall(held) }

// DropMessages loses what HoldMessages holds, except what it holds already. Connections stay
// intact.
func (p *Proxy) DropMessages() { p.stall(dropped) }

func (p *Proxy) stall(f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = f
	if f != passed {
		p.needFrames()
	}
	for l := range p.links {
		l.look()
	}
}

func (p *Proxy) messagesAre() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages
}

// Pass ends holding and dropping: what was held is passed on, unless its connection has ended, and
// connections that lost something are reset. Delays and faults of certain requests stay.
func (p *Proxy) Pass() {
	p.mu.Lock()
	p.requests.drops, p.replies.drops = false, false
	for l := range p.links {
		if l.lostRequests || l.lostReplies {
			l.reset()
		}
	}
	p.mu.Unlock()
	p.stall(passed)
	p.fresh.open()
	p.requests.gate.open()
	p.replies.gate.open()
}

// Delay delays everything by d in each direction, so that a reply takes 2 x d longer. It lengthens
// the way: what is sent together arrives together. 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.DelayRequests(d)
	p.DelayReplies(d)
}

// DelayRequests is Delay for what clients send.
func (p *Proxy) DelayRequests(d time.Duration) { p.requests.delay.Store(int64(d)) }

// DelayReplies is Delay for what the target sends.
func (p *Proxy) DelayReplies(d time.Duration) { p.replies.delay.Store(int64(d)) }

// Heal ends every fault. It fails if another program took the port while the proxy refused
// connections.
func (p *Proxy) Heal() error {
	p.mu.Lock()
	p.faults = nil
	p.mu.Unlock()
	p.Delay(0)
	p.Pass()
	return p.Accept()
}
