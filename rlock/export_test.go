package rlock

import (
	"context"
	"strings"
	"time"

	ownerpkg "holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
)

// Waiting returns how many callers of this client wait for the lock.
func Waiting(l *Lock) int {
	of := l.waiting
	n, _ := l.client.queues.Waiters(func(name queueName) bool {
		return name == of.queue || of.ownQueue && strings.HasPrefix(name.lock, of.queue.lock)
	})
	return n
}

// Detach has all commands of a client sent by workers.
func Detach(c *Client) {
	c.calls = transport.NewCalls(c.group, c.options.CommandTimeout, c.transport.Ready)
	c.calls.OnLost(c.connectionLost)
}

// CleanUp sends what removes the remains of an owner, as the client does in the background.
func CleanUp(l *Lock, owner string) {
	l.client.cleanUp(cleanup{lock: l, request: request{owner: owner}})
}

// GiveTurn gives a turn of the owner to a caller that is about to ask for the lock, or about to
// leave. GiveTurn returns what the caller gets.
func GiveTurn(l *Lock, owner string, until time.Time, leaves bool) (*Hold, error) {
	at := attempt{fresh: new(acquisition)}
	if err := at.start(context.Background(), l, wait.Unlimited, Watchdog); err != nil {
		return nil, err
	}
	defer l.client.group.Leave()
	at.request.owner = l.client.newName(l.wakes)
	at.fresh.token, at.session = ownerpkg.New(), &at.fresh.home
	l.client.sessions.OpenNew(at.session, sessionKey{l.family, l.name, at.fresh.token})
	defer at.session.Unlock()
	w, _ := at.join(l.waiting, true)
	turn := waitqueue.Turn{Owner: owner, Until: until}
	l.client.queues.Pass(l.waiting.queue, waitqueue.Streak{HereSince: time.Now()}, turn)
	if leaves {
		return at.leave(w, nil, nil)
	}
	return at.queue(l.waiting, w, true)
}

// Sessions returns how many sessions of a client are open, by holds, attempts and cleanups, and how
// many of its acquisitions last. An owner that nobody else may know has a session of its own.
func Sessions(c *Client) int {
	open := len(c.sessions.All())
	for _, a := range c.acquisitions() {
		a.mu.Lock()
		if a.state == active {
			open++
		}
		a.mu.Unlock()
	}
	return open
}

// Unconfirmed returns how many releases of read holds, in all sessions of the lock's client, have
// had no reply yet.
func Unconfirmed(l *Lock) (n int) {
	for _, s := range l.client.sessions.All() {
		s.Do(func(ow *owned) {
			for _, releases := range ow.unconfirmed {
				n += releases
			}
		})
	}
	return n
}

// CountAgain has a client count its acquisitions from the beginning, as a copy of its process does.
func CountAgain(c *Client) { c.acquired.Store(0) }

// Register makes a hold look as if it was acquired by asking while its owner was registered.
func Register(h *Hold) { h.level.acquisition.(*acquisition).registered = true }

// MakeLate makes a hold look as if an earlier request of its owner, with a lease, may still be
// executed.
func MakeLate(h *Hold, lease time.Duration) {
	a := h.level.acquisition.(*acquisition)
	a.late = &request{owner: a.owner, lease: lease}
}

// GrantLate delivers the message that a release has granted the lock to the owner of a hold.
func GrantLate(c *Client, h *Hold) {
	a := h.level.acquisition.(*acquisition)
	c.granted(wire.GrantChannel(a.lock.name, c.id), a.owner+" 7 0 1 0 "+a.lock.name)
}

// Warn logs a warning, as the client does.
func Warn(c *Client, message string, details ...any) { c.warn(message, details...) }

// MostUnlogged is how many warnings wait for a log handler that blocks.
const MostUnlogged = mostUnlogged
