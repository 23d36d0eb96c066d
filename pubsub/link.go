package pubsub

import (
	"cmp"
	"container/list"
	"errors"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wait"
)

// link is one connection to one node, from the dial to its end, with the channels on it. A link
// never dials again. After a loss of the connection, the router assigns the channels to a new link,
// perhaps of another node.
type link struct {
	hub  *Hub
	node string
	wake chan struct{}
	conn connection // set and used by the goroutine of the link

	yielded time.Time // when the reader of conn last yielded; used by the reader

	// Guarded by hub.mu.
	members map[*channel]struct{}
	wanted  []*channel // in phase wanted, or in that phase earlier
	idle    list.List  // of *channel, by idleSince; some may be in use again
	strays  [][]string // classic channels to unsubscribe, because their sharded channels have left

	replaced bool // by Redial; the link ends, and its channels get another link
}

// add takes a channel to subscribe on this link. add drops a channel without subscribers. Called
// with hub.mu held.
func (l *link) add(c *channel) {
	if len(c.subscribers) == 0 {
		l.hub.drop(c)
		return
	}
	c.phase = wanted
	c.link = l
	l.members[c] = struct{}{}
	l.wanted = append(l.wanted, c)
	wait.Fire(l.wake)
}

// run connects to the node, and subscribes to the channels of the link there and unsubscribes from
// them, until no channel is left, the connection is lost, or the hub closes.
func (l *link) run(client rueidis.Client) {
	h := l.hub
	conn, err := h.dial(h.running, client, h.options.Sharded,
		rueidis.PubSubHooks{OnMessage: l.onMessage, OnSubscription: l.onSubscription})
	if err != nil {
		l.giveBack(err)
		return
	}
	l.conn = conn
	for step := l.next(); step != nil; step = l.next() {
		if step() != nil {
			// Give the channels back before closing the connection, so that other links can subscribe
			// meanwhile. Closing takes a second if the server hangs.
			l.giveBack(nil)
			if h.options.OnLost != nil && h.running.Err() == nil {
				h.options.OnLost()
			}
			break
		}
	}
	conn.close()
}

// burst is the time between messages up to which the reader does not yield.
const burst = 100 * time.Microsecond

// onMessage delivers a message, on the reader of the connection. After a direct message, the reader
// yields, so that the goroutine that the message has woken runs at once. Otherwise that goroutine
// would wait until the reader has found that there is no other message, which takes a system call.
// In a burst of messages, only the first one makes the reader yield, because in a busy process the
// reader may have to wait for its next turn.
func (l *link) onMessage(m rueidis.PubSubMessage) {
	if l.hub.deliver(m) && time.Since(l.yielded) > burst {
		runtime.Gosched()
		l.yielded = time.Now()
	}
}

// next returns the next step, or nil if the link has no channels. The link has then left the hub,
// so nothing can add a channel.
func (l *link) next() func() error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(l.members) == 0 {
		delete(h.links, l.node)
		return nil
	}
	if l.replaced {
		return func() error { return errReplaced }
	}
	var b batch
	var expired <-chan time.Time // when the first idle channel has lingered
	for e := l.idle.Front(); e != nil && !b.full(); e = l.idle.Front() {
		c := e.Value.(*channel)
		if len(c.subscribers) == 0 {
			if left := h.options.linger - time.Since(c.idleSince); left > 0 {
				expired = time.After(left)
				break
			}
			b.add(c, leaving)
		}
		l.idle.Remove(e)
		c.idle = nil
	}
	if len(b.channels) > 0 {
		return func() error { return l.unsubscribe(b) }
	}
	if strays := l.nextStrays(); len(strays) > 0 {
		return func() error { return l.unsubscribeStrays(strays) }
	}
	for len(l.wanted) > 0 && !b.full() {
		c := l.wanted[0]
		l.wanted = l.wanted[1:]
		if c.link == l && c.phase == wanted {
			b.add(c, asking)
		}
	}
	if len(l.wanted) == 0 {
		l.wanted = nil
	}
	if len(b.channels) > 0 {
		return func() error { return l.subscribe(b) }
	}
	return func() error {
		select {
		case <-l.wake:
		case <-expired:
		case err := <-l.conn.lost():
			return cmp.Or(err, net.ErrClosed)
		case <-h.running.Done():
			return h.running.Err()
		}
		return nil
	}
}

// nextStrays takes as many strays as fit into one exchange. Called with hub.mu held.
func (l *link) nextStrays() [][]string {
	var b batch
	n := 0
	for ; n < len(l.strays) && !b.full(); n++ {
		for _, name := range l.strays[n] {
			b.size += len(name)
		}
	}
	strays := l.strays[:n]
	l.strays = l.strays[n:]
	if len(l.strays) == 0 {
		l.strays = nil
	}
	return strays
}

var errReplaced = errors.New("the connection is replaced")

// giveBack returns all channels to the router. dialErr is why there was no connection, or nil.
func (l *link) giveBack(dialErr error) {
	h := l.hub
	h.mu.Lock()
	defer h.unlock()
	delete(h.links, l.node)
	if h.running.Err() != nil {
		return
	}
	// Forget nodes that are not in use any more. A node in use would have failed again.
	maps.DeleteFunc(h.outages, func(_ string, out outage) bool {
		return time.Since(out.until) > time.Minute
	})
	out := h.outages[l.node]
	out.until = time.Now().Add(out.tries.Next())
	if dialErr != nil && !out.logged {
		out.logged = true
		h.log(slog.LevelWarn, "holdfast: cannot connect to the node; "+
			"waiters ask every few seconds until holdfast is connected again",
			"node", l.node, "error", dialErr)
	}
	h.outages[l.node] = out
	for c := range l.members {
		h.requeue(c, dialErr != nil, time.Until(out.until))
	}
}

// outage is a node whose connection was lost or could not be made.
type outage struct {
	tries  wait.Backoff
	until  time.Time // the router does not dial before
	logged bool
}
