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
	stir           chan struct{} // has that goroutine look again
	end            sync.Once
	ended          chan struct{} // closed when the connection is over: nothing is kept back any more

	lostRequests, lostReplies bool // guarded by proxy.mu; some were dropped, so no other may follow
	blind                     bool // guarded by proxy.mu; these are not frames, or not in an order that is known
}

func newLink(p *Proxy, client, target net.Conn) *link {
	return &link{proxy: p, client: client, target: target, stir: make(chan struct{}, 1), ended: make(chan struct{})}
}

// run passes frames on in both directions until the connection ends. Whatever ends one direction ends the link: a half-open
// connection is not a fault that is played here.
func (l *link) run() {
	requests, replies := make(chan parcel, laneSize), make(chan parcel, laneSize)
	var lanes sync.WaitGroup
	lanes.Go(func() { l.receive(newFrameReader(l.client, true), requests) })
	lanes.Go(func() { l.receive(newFrameReader(l.target, false), replies) })
	lanes.Go(func() { l.passRequests(requests) })
	lanes.Go(func() { l.passReplies(replies) })
	lanes.Wait()
}

// receive puts frames in a lane until the side that sends them has ended. What is in the lane by then is still passed on.
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
		if l.proxy.loses(&l.proxy.requests, &l.lostRequests) || l.answers(q) {
			continue
		}
		if _, err := l.target.Write(q.frame.raw); err != nil {
			return
		}
	}
	l.settle(l.target)
}

// answers answers a request in the server's place, or notes that the server's reply will be due.
func (l *link) answers(q parcel) bool {
	if l.proxy.cannotSee(l, q.frame.opaque) {
		return false
	}
	words := q.frame.words()
	if len(words) == 0 {
		return false // nobody answers this
	}
	e := newExchange(words, q.arrived)
	if e.is("SYNC") || e.is("PSYNC") || e.is("CLIENT", "REPLY") {
		l.proxy.cannotSee(l, true)
		return false
	}
	if f := l.proxy.due(e, instead); f != nil {
		e.answer = f.frame()
		f.count()
	}
	l.talk.ask(e)
	if e.answer != nil {
		l.look()
	}
	return e.answer != nil
}

func (l *link) passReplies(lane <-chan parcel) {
	defer l.reset()
	for {
		if l.unasked() != nil {
			return
		}
		select {
		case r, open := <-lane:
			if !open {
				l.settle(l.client)
				return
			}
			if !l.proxy.replies.admit(r.arrived, l.ended) || l.unasked() != nil || l.reply(r.frame) != nil {
				return
			}
		case <-l.stir:
		case <-l.ended:
			return
		}
	}
}

// look has passReplies look whether there is something to say that the server does not say now.
func (l *link) look() {
	select {
	case l.stir <- struct{}{}:
	default: // it will look anyway
	}
}

// unasked passes on the proxy's answers whose turn it is, and the messages that are no longer held.
func (l *link) unasked() error {
	for e := l.talk.next(); e != nil && e.answer != nil; e = l.talk.next() {
		if !l.proxy.replies.admit(e.asked, l.ended) {
			return net.ErrClosed
		}
		l.talk.over()
		if err := l.tell(e.answer); err != nil {
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

// reply passes on what the server says, or what it is to seem to say.
func (l *link) reply(f frame) error {
	if l.proxy.cannotSee(l, f.opaque) {
		return l.tell(f.raw)
	}
	e := l.talk.match(f)
	switch {
	case e == nil && f.kind() != '-': // an error would be a farewell
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
	return l.tell(fault.frame())
}

// message passes on what nobody asked for.
func (l *link) message(f frame) error {
	state := l.proxy.messagesAre()
	switch {
	case state == dropped:
		return nil
	case state == held || len(l.held) > 0: // the order stays
		l.held = append(l.held, f)
		l.look()
		return nil
	}
	return l.tell(f.raw)
}

// tell says something to the client, unless it is to be lost.
func (l *link) tell(what []byte) error {
	if l.proxy.loses(&l.proxy.replies, &l.lostReplies) {
		return nil
	}
	_, err := l.client.Write(what)
	return err
}

// settle waits until one side has received what it was told: a reset overtakes what is still on the way.
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

// sever closes a connection with a reset instead of a farewell.
func sever(c net.Conn) {
	c = transport(c)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is a polite one, which breaks the connection as well
	}
	_ = c.Close() // broken off is what it is to be
}

// transport is the connection below TLS.
func transport(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}
