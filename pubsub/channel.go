package pubsub

import (
	"container/list"
	"slices"
	"time"

	"holdfast/internal/wait"
)

// phase is the state of a channel's subscription; the package documentation draws the transitions.
type phase int

const (
	routing   phase = iota // with the router; it has no link
	wanted                 // on a link, to be subscribed next
	asking                 // SUBSCRIBE in flight
	confirmed              // the server sends us its messages
	leaving                // UNSUBSCRIBE in flight
	dropped                // no longer in the hub; only stale pointers see it
)

// channel is one channel of a Hub, with the subscribers that share it. Hub.mu guards it.
type channel struct {
	name  string
	phase phase

	// paired are the paired channels that its commands name too. Set when the channel gets a link;
	// replaced, never modified.
	paired []string

	// unpaired says which paired channels the server refused. Unless it is nil, paired is empty.
	unpaired *unpaired

	subscribers list.List // of *Subscription, the next one to be woken first

	// link is set while phase is wanted, asking, confirmed or leaving, else nil.
	link *link

	// idle is the channel's element of link.idle, nil when it is not in the list. idleSince is when
	// the last subscriber left, valid while there are none.
	idle      *list.Element
	idleSince time.Time

	// Used by the router.
	due     time.Time    // not to be routed before
	refresh bool         // the last route proved wrong
	tries   wait.Backoff // between failures, since the last confirmation

	// refused is the server's refusal of this channel, nil when there is none.
	refused error
}

// unpaired is the server's refusal of the command with the paired channels.
type unpaired struct {
	channels []string
	reply    error
}

// join adds a subscriber, behind those that wait already.
func (c *channel) join(s *Subscription) {
	s.memberships = append(s.memberships, membership{c, c.subscribers.PushBack(s)})
}

// isPaired reports whether the channel is confirmed with its paired channels. The server accepts a
// command as a whole or not at all, so a confirmation of the channel's own name confirms them all.
func (c *channel) isPaired() bool { return c.phase == confirmed && len(c.paired) > 0 }

// wakeOne gives a permit to the first subscriber of a topic that has none, and moves it to the
// back. When all have one there is nothing to do: each of them will ask after this moment.
func (c *channel) wakeOne(topic string) {
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*Subscription); s.topic == topic && s.permit(0) {
			c.subscribers.MoveToBack(e)
			return
		}
	}
}

// wakeOneOfEach wakes one subscriber of every topic, because the message does not name the topic.
func (c *channel) wakeOneOfEach() {
	woken := make([]string, 0, 4) // topics; on the stack, because there are nearly never more
	var next *list.Element
	for e := c.subscribers.Front(); e != nil; e = next {
		next = e.Next()
		s := e.Value.(*Subscription)
		if !slices.Contains(woken, s.topic) && s.permit(0) {
			woken = append(woken, s.topic)
			c.subscribers.MoveToBack(e)
		}
	}
}

// wakeAll gives every subscriber a permit, with the number of Subscription.permit.
func (c *channel) wakeAll(number int64) {
	for e := c.subscribers.Front(); e != nil; e = e.Next() {
		e.Value.(*Subscription).permit(number)
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
		l.wake.send() // nothing left to do: it ends
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
		c.link.wake.send() // it has no timer yet
	}
}

// notIdle takes the channel off its link's idle list.
func (c *channel) notIdle() {
	if c.idle != nil {
		c.link.idle.Remove(c.idle)
		c.idle = nil
	}
}
