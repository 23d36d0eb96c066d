package faultproxy

import "time"

// HoldRequests keeps what clients say, until Pass, and lets replies pass.
func (p *Proxy) HoldRequests() { p.requests.gate.shut() }

// HoldReplies lets requests pass and keeps what the target says, until Pass.
func (p *Proxy) HoldReplies() { p.replies.gate.shut() }

// BlackHole keeps everything in both directions, until Pass. Connections are accepted, and get as far as the proxy.
func (p *Proxy) BlackHole() {
	p.requests.gate.shut()
	p.replies.gate.shut()
}

// BlackHoleNew accepts new connections and does nothing with them, until Pass. Those that exist go on.
func (p *Proxy) BlackHoleNew() { p.fresh.shut() }

// DropRequests loses what clients say, until Pass, while connections stay up and replies pass: a partition in one direction.
// A connection that has lost something carries nothing more in that direction, and is reset by Pass: TCP would never go on
// behind a gap, and the reply to the next request would be taken for the one to the request that was lost.
func (p *Proxy) DropRequests() { p.drop(&p.requests) }

// DropReplies is DropRequests for what the target says: requests are executed, and nobody hears of it.
func (p *Proxy) DropReplies() { p.drop(&p.replies) }

func (p *Proxy) drop(d *direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.drops = true
}

// loses tells whether what a link would say now is lost, and remembers in gap that something was.
func (p *Proxy) loses(d *direction, gap *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	*gap = *gap || d.drops
	return *gap
}

// fate is what becomes of messages.
type fate int

const (
	passed fate = iota
	held
	dropped
)

// HoldMessages keeps what the target says without being asked, until Pass: messages of pub/sub, invalidations, the end of a
// sharded subscription, what MONITOR reports. Replies go on, confirmations of subscriptions included, and may overtake it.
func (p *Proxy) HoldMessages() { p.stall(held) }

// DropMessages loses what HoldMessages keeps, what it has kept excepted. Connections are none the worse for it.
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

// Pass ends what holds or drops: what was kept is passed on, unless its connection has ended, and connections that lost
// something are reset. Delays go on, and so does what waits for certain requests.
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

// Delay makes everything late by d, in each direction, so that an answer takes 2 x d longer. It is the way that takes longer:
// what is sent together arrives together. 0 ends that.
func (p *Proxy) Delay(d time.Duration) {
	p.DelayRequests(d)
	p.DelayReplies(d)
}

// DelayRequests is Delay for what clients say.
func (p *Proxy) DelayRequests(d time.Duration) { p.requests.delay.Store(int64(d)) }

// DelayReplies is Delay for what the target says.
func (p *Proxy) DelayReplies(d time.Duration) { p.replies.delay.Store(int64(d)) }

// Heal ends every fault. It fails if somebody else has taken the port while it was refusing.
func (p *Proxy) Heal() error {
	p.mu.Lock()
	p.faults = nil
	p.mu.Unlock()
	p.Delay(0)
	p.Pass()
	return p.Accept()
}
