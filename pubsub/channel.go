package pubsub

import (
	"container/list"
	"time"
)

// phase is the state of a channel's subscription; the package documentation
// draws the transitions.
type phase int

const (
	routing   phase = iota // with the router; it has no link
	wanted                 // on a link, to be subscribed next
	asking                 // SUBSCRIBE in flight
	confirmed              // the server sends us its messages
	leaving                // UNSUBSCRIBE in flight
	dropped                // no longer in the hub; only stale pointers see it
)

// channel is one channel of a Hub, with the subscribers that share it. Hub.mu
// guards it.
type channel struct {
	name  string
	phase phase

	// names are the names for one command: the channel's own, then those of its
	// paired channels. Set when the channel gets its first link; replaced, never modified.
	names []string

	// unpaired is the server's refusal of the command with the paired channels. Unless
	// it is nil, the channel is subscribed without them.
	unpaired error

	subscribers list.List // of *Subscription, the next one to be woken first

	// link is set while phase is wanted, asking, confirmed or leaving, else nil.
	link *link

	// idle is the channel's element of link.idle, nil when it is not in the list.
	// idleSince is when the last subscriber left, valid while there are none.
	idle      *list.Element
	idleSince time.Time

	// Used by the router.
	due      time.Time // not to be routed before
	refresh  bool      // the last route proved wrong
	attempts int       // failures since the last confirmation

	// refused is the server's refusal of this channel, nil when there is none.
	refused error
}

// join adds a subscriber, behind those that wait already.
func (c *channel) join(s *Subscription) {
	m := membership{channel: c, element: c.subscribers.PushBack(s)}
	s.memberships = append(s.memberships, m)
}

// confirm notes that the server sends us the messages from now on. It wakes all
// subscribers, because earlier messages are lost.
func (c *channel) confirm() {
	c.phase = confirmed
	c.attempts = 0
	c.refused = nil
	c.wakeAll()
}

// wakeOne gives a permit to the first subscriber of a topic that has none, and
// moves it to the back. When all have one there is nothing to do: each of them
// will ask after this moment.
func (c *channel) wakeOne(topic string) {
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*Subscription); s.topic == topic && s.permit() {
			c.subscribers.MoveToBack(e)
			return
		}
	}
}

// wakeOneOfEach wakes one subscriber of every topic, because the message does not
// name the topic.
func (c *channel) wakeOneOfEach() {
	if c.subscribers.Len() == 0 {
		return
	}
	first := c.subscribers.Front().Value.(*Subscription).topic
	var others map[string]struct{} // nearly always nil: a channel with two topics is rare
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		if topic := e.Value.(*Subscription).topic; topic != first {
			if others == nil {
				others = make(map[string]struct{})
			}
			others[topic] = struct{}{}
		}
	}
	c.wakeOne(first)
	for topic := range others {
		c.wakeOne(topic)
	}
}

// wakeAll gives every subscriber a permit.
func (c *channel) wakeAll() {
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		e.Value.(*Subscription).permit()
	}
}

// advise passes a number to every subscriber.
func (c *channel) advise(number int64) {
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		e.Value.(*Subscription).advise(number)
	}
}

// leaveLink takes the channel off its link, if it has one.
func (c *channel) leaveLink() {
	l := c.link
	if l == nil {
		return
	}
	delete(l.members, c)
	c.notIdle()
	c.link = nil
	if len(l.members) == 0 {
		l.signal() // nothing left to do: it ends
	}
}

// linger puts the channel at the end of its link's idle list.
func (c *channel) linger(now time.Time) {
	c.idleSince = now
	if c.idle != nil {
		c.link.idle.MoveToBack(c.idle)
		return
	}
	c.idle = c.link.idle.PushBack(c)
	if c.link.idle.Len() == 1 {
		c.link.signal() // it has no timer yet
	}
}

// notIdle takes the channel off its link's idle list.
func (c *channel) notIdle() {
	if c.idle != nil {
		c.link.idle.Remove(c.idle)
		c.idle = nil
	}
}
