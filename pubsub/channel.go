package pubsub

import (
	"container/list"
	"slices"
	"strconv"
	"time"

	"holdfast/internal/wait"
)

// phase is the state of a channel's subscription. The package documentation draws the transitions.
type phase int

const (
	routing   phase = iota // with the router, without a link
	wanted                 // on a link, to be subscribed next
	asking                 // SUBSCRIBE in flight
	confirmed              // the server sends us its messages
	leaving                // UNSUBSCRIBE in flight
	dropped                // no longer in the hub; only stale pointers lead to it
)

// channel is one channel of a Hub, with the subscribers that share it. Hub.mu guards it.
type channel struct {
	name  string
	phase phase

	// paired are the paired channels in the commands of this channel. The router sets paired when the
	// channel gets a link, and replaces it without modifying it.
	paired []string

	// classic names the classic channels to which the link also subscribes. The router sets classic
	// when the channel gets a link, and never modifies it. withClassic reports whether, as far as the
	// hub knows, the link is subscribed to the classic channels.
	classic     []string
	withClassic bool

	// unpaired reports that the server rejected the paired channels, and that paired is empty for this
	// reason; nil otherwise. Call unpaired with mu held once the server has accepted the channel.
	// Before that, the server may have rejected the channel itself.
	unpaired func()

	subscribers []*Subscription // the next one to be woken first
	link        *link           // nil while phase is routing, or dropped unless Close dropped it
	idle        *list.Element   // of link.idle, nil when it is not in the list
	idleSince   time.Time       // when the last subscriber left, valid while there are none

	// Used by the router.
	due     time.Time    // the router waits until then
	refresh bool         // the last route proved wrong
	tries   wait.Backoff // between failures, since the last confirmation
}

// join adds a subscriber behind the others.
func (c *channel) join(s *Subscription) {
	c.subscribers = append(c.subscribers, s)
	s.channels = append(s.channels, c)
}

// isPaired reports whether the channel is confirmed with its paired channels. The server accepts a
// command as a whole or not at all, so a confirmation of the channel's name confirms all.
func (c *channel) isPaired() bool { return c.phase == confirmed && len(c.paired) > 0 }

// hear gives permits for a message. "0" is for one waiter of each topic, because the message does
// not name the topic. A number above 1 is for all waiters, and not a reason to ask. Any other
// message wakes all waiters, because waking too many costs a request each, but waking too few costs
// a wait.
func (c *channel) hear(message string) {
	if message != "0" {
		number, err := strconv.ParseInt(message, 10, 64)
		if err != nil || number <= 1 {
			number = 0
		}
		c.wakeAll(number)
		return
	}
	topics := make([]string, 0, 4) // on the stack, because there are nearly never more
	for _, s := range c.subscribers {
		if !slices.Contains(topics, s.topic) {
			topics = append(topics, s.topic)
		}
	}
	for _, topic := range topics {
		c.wakeOne(topic)
	}
}

// wakeOne wakes the first subscriber of a topic without a permit to ask, and moves the subscriber
// to the back. If all have a permit, wakeOne does nothing, because each will ask after this moment.
func (c *channel) wakeOne(topic string) {
	for i, s := range c.subscribers {
		if s.topic == topic && s.permit(0) {
			c.subscribers = append(slices.Delete(c.subscribers, i, i+1), s)
			return
		}
	}
}

// wakeAll gives every subscriber a permit, with the number of Subscription.permit.
func (c *channel) wakeAll(number int64) {
	for _, s := range c.subscribers {
		s.permit(number)
	}
}

// pair sets the paired channels for the next subscription of a channel. Called with mu held.
func (h *Hub) pair(c *channel, paired []string) {
	for _, name := range c.paired {
		delete(h.paired, name)
	}
	for _, name := range paired {
		h.paired[name] = struct{}{}
	}
	c.paired, c.unpaired = paired, nil
}

// abandon drops a channel without subscribers, or lets the channel linger. unsubscribe drops a
// leaving channel. Called with mu held.
func (h *Hub) abandon(c *channel) {
	switch c.phase {
	case routing, wanted:
		h.drop(c)
		wait.Fire(h.router.wake)
	case asking, confirmed:
		c.idleSince = time.Now()
		if c.idle != nil {
			c.link.idle.MoveToBack(c.idle)
			return
		}
		c.idle = c.link.idle.PushBack(c)
		if c.link.idle.Len() == 1 {
			wait.Fire(c.link.wake) // the link has no timer yet
		}
	}
}

// requeue takes a channel off its link and lets the router assign the channel again after a delay.
// requeue drops a channel without subscribers, or of a closed hub. Called with mu held.
func (h *Hub) requeue(c *channel, refresh bool, delay time.Duration) {
	if len(c.subscribers) == 0 || c.phase == dropped {
		h.drop(c)
		return
	}
	c.leaveLink()
	c.refresh = refresh
	h.enqueue(c, delay)
}

// drop removes an unsubscribed channel. Called with mu held.
func (h *Hub) drop(c *channel) {
	c.leaveLink()
	c.phase = dropped
	h.pair(c, nil)
	// After Close the map is empty. Before Close the name belongs to c until here.
	delete(h.channels, c.name)
	h.known.Store(int64(len(h.channels)))
}

// leaveLink takes the channel off its link, if it has one.
func (c *channel) leaveLink() {
	if c.link == nil {
		return
	}
	delete(c.link.members, c)
	if c.withClassic {
		c.link.strays = append(c.link.strays, c.classic)
		c.withClassic = false
	}
	if c.idle != nil {
		c.link.idle.Remove(c.idle)
		c.idle = nil
	}
	if len(c.link.members) == 0 || len(c.link.strays) > 0 {
		wait.Fire(c.link.wake) // the link ends if there is nothing left to do
	}
	c.link = nil
}
