package faultproxy

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// laneSize is how many frames may be on their way before the proxy stops reading.
const laneSize = 1024

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, target net.Conn
	talk           conversation
	held           []frame       // messages; for the goroutine that passes replies on
	stir           chan struct{} // makes that goroutine check again
	end            sync.Once
	ended          chan struct{} // closed when the connection is over: nothing is held any more

	lostRequests, lostReplies bool // guarded by proxy.mu; some were dropped, so no other may follow
	blind                     bool // guarded by proxy.mu; no frames, or in an unknown order
}

func newLink(p *Proxy, client, target net.Conn) *link {
	return &link{proxy: p, client: client, target: target, stir: make(chan struct{}, 1),
		ended: make(chan struct{})}
}

// run passes frames on in both directions until the connection ends. Whatever ends one direction
// ends the link: this proxy does not play half-open connections.
func (l *link) run() {
	requests, replies := make(chan parcel, laneSize), make(chan parcel, laneSize)
	var lanes sync.WaitGroup
	lanes.Go(func() { l.receive(newFrameReader(l.client, true), requests) })
	lanes.Go(func() { l.receive(newFrameReader(l.target, false), replies) })
	lanes.Go(func() { l.passRequests(requests) })
	lanes.Go(func() { l.passReplies(replies) })
	lanes.Wait()
}

// receive puts frames in a lane until their sender has ended. What is in the lane by then is still
// passed on.
func (l *link) receive(from *frameReader, lane chan<- parcel) {
	defer close(lane)
	for {
		f, err := from.next()
		if err != nil {
			return
		}
		select {
		case lane <- parcel{f, time.Now()}:
		case <-l.ended:
			return
		}
	}
}

func (l *link) passRequests(lane <-chan parcel) {
	defer l.reset()
	for q := range lane {
		if !l.proxy.requests.admit(q.arrived, l.ended) {
			return
		}
		if l.proxy.loses(&l.proxy.requests, &l.lostRequests) || l.repliesTo(q) {
			continue
		}
		if _, err := l.target.Write(q.frame.raw); err != nil {
			return
		}
	}
	l.settle(l.target)
}

// repliesTo replies to a request in the server's place, or notes that the server will reply.
func (l *link) repliesTo(q parcel) bool {
	if l.proxy.cannotSee(l, q.frame.opaque) {
		return false
	}
	words := q.frame.words()
	if len(words) == 0 {
		return false // this has no reply
	}
	e := newExchange(words, q.arrived)
	if e.is("SYNC") || e.is("PSYNC") || e.is("CLIENT", "REPLY") {
		l.proxy.cannotSee(l, true)
		return false
	}
	if f := l.proxy.due(e, instead); f != nil {
		e.own = f.reply
		f.count()
	}
	l.talk.ask(e)
	if e.own != nil {
		l.look()
	}
	return e.own != nil
}

func (l *link) passReplies(lane <-chan parcel) {
	defer l.reset()
	for {
		if l.unrequested() != nil {
			return
		}
		select {
		case r, open := <-lane:
			if !open {
				l.settle(l.client)
				return
			}
			if !l.proxy.replies.admit(r.arrived, l.ended) || l.unrequested() != nil ||
				l.reply(r.frame) != nil {
				return
			}
		case <-l.stir:
		case <-l.ended:
			return
		}
	}
}

// look has passReplies check whether something is to be sent that does not come from the server
// now.
func (l *link) look() {
	select {
	case l.stir <- struct{}{}:
	default: // it will check anyway
	}
}

// unrequested passes on the proxy's replies that are due, and messages that are no longer held.
func (l *link) unrequested() error {
	for e := l.talk.next(); e != nil && e.own != nil; e = l.talk.next() {
		if !l.proxy.replies.admit(e.sent, l.ended) {
			return net.ErrClosed
		}
		l.talk.over()
		if err := l.tell(e.own); err != nil {
			return err
		}
	}
	if len(l.held) == 0 || l.proxy.messagesAre() == held {
		return nil
	}
	messages := l.held
	l.held = nil
	for _, f := range messages {
		if err := l.tell(f.raw); err != nil {
			return err
		}
	}
	return nil
}

var errCut = errors.New("cut")

// reply passes on what the server sends, or what replaces it.
func (l *link) reply(f frame) error {
	if l.proxy.cannotSee(l, f.opaque) {
		return l.tell(f.raw)
	}
	e := l.talk.match(f)
	switch {
	case e == nil && f.kind() != '-': // an error would be the last the server sends
		return l.message(f)
	case e == nil:
		return l.tell(f.raw)
	case e.replaced:
		return nil // one of several confirmations
	case e.frames > 1:
		return l.tell(f.raw)
	}
	fault := l.proxy.due(e, cutting, replacing)
	if fault == nil {
		return l.tell(f.raw)
	}
	if fault.does == cutting {
		l.settle(l.client)
		fault.cut(l)
		return errCut
	}
	fault.count()
	e.replaced = true
	return l.tell(fault.reply)
}

// message passes on what was not requested.
func (l *link) message(f frame) error {
	state := l.proxy.messagesAre()
	switch {
	case state == dropped:
		return nil
	case state == held || len(l.held) > 0: // keeps the order
		l.held = append(l.held, f)
		l.look()
		return nil
	}
	return l.tell(f.raw)
}

// tell sends something to the client, unless it is to be lost.
func (l *link) tell(what []byte) error {
	if l.proxy.loses(&l.proxy.replies, &l.lostReplies) {
		return nil
	}
	_, err := l.client.Write(what)
	return err
}

// settle waits until one side has received all that was sent to it: a reset overtakes what is still
// on the way.
func (l *link) settle(c net.Conn) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for unreceived(transport(c)) > 0 {
		select {
		case <-again.C:
		case <-l.ended:
			return
		}
	}
}

// reset ends the link with a reset to both sides.
func (l *link) reset() {
	l.end.Do(func() {
		close(l.ended)
		sever(l.client)
		sever(l.target)
	})
}

// sever closes a connection with a reset instead of a proper end.
func sever(c net.Conn) {
	c = transport(c)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise Close ends it properly, which breaks it as well
	}
	_ = c.Close() // it must end in any case
}

// transport returns the connection below TLS.
func transport(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}
