package rlock

import (
	"context"
	"strings"
	"sync"
	"time"

	"holdfast/internal/identity"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
)

const (
	// mostStrangers limits the clients of other processes that a directory remembers.
	mostStrangers = 1000
	// strangeFor is how long a waiter waits for an unknown holder before it looks up who that is.
	strangeFor = time.Second
)

// directory remembers who clients of other processes are. Waiters fill it in the background.
type directory struct {
	client *Client
	ctx    context.Context // ends with the client
	cancel context.CancelFunc

	mu        sync.Mutex
	entries   map[string]entry // by client id; guarded by mu
	forbidden time.Time        // until when it does not look, because of the ACL; guarded by mu
}

func (d *directory) begin(c *Client) {
	d.client = c
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// entry is what is known of a client. Who a client is never changes, but Redis may learn it late.
type entry struct {
	identity Identity  // zero if Redis did not know
	retry    time.Time // when to ask again if it is zero
}

// find returns who an owner of another process is; zero if that is not known. ask says that it is
// time to look it up. It sends nothing.
func (d *directory) find(owner string) (found Identity, ask bool) {
	id, _, ok := strings.Cut(owner, ":")
	d.mu.Lock()
	defer d.mu.Unlock()
	e, known := d.entries[id]
	return e.identity, ok && time.Until(d.forbidden) <= 0 &&
		(!known || e.identity == Identity{} && time.Until(e.retry) <= 0)
}

// lookUp asks Redis in the background who an owner is, unless that is known or was asked lately.
func (d *directory) lookUp(owner string) {
	if _, ask := d.find(owner); !ask {
		return
	}
	id, _, _ := strings.Cut(owner, ":")
	d.enter(id, Identity{}) // others need not ask
	d.client.group.Go(func() {
		c := d.client
		ctx, cancel := context.WithTimeout(d.ctx, c.options.CommandTimeout)
		defer cancel()
		who, err := identity.Read(ctx, c.redis, id)
		if err == nil {
			d.enter(id, who)
		} else if rediserr.HasCode(err, "NOPERM") {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.forbidden = time.Now().Add(transport.ForbiddenFor)
		}
	})
}

// enter makes an entry, for which another one may have to go.
func (d *directory) enter(id string, identity Identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.entries[id]; !known && len(d.entries) == mostStrangers {
		for other := range d.entries {
			delete(d.entries, other)
			break
		}
	}
	if d.entries == nil {
		d.entries = make(map[string]entry)
	}
	d.entries[id] = entry{identity, time.Now().Add(d.client.options.WatchdogLease)}
}

// lookUpLater has the holder looked up if it is unknown, and stays the holder for a second.
func (kn *known) lookUpLater(d *directory) {
	now, holder := time.Now(), kn.holder.Owner
	if holder == kn.stranger && now.Before(kn.lookUpAt) {
		return
	}
	kn.stranger = holder
	if kn.lookUp != nil {
		kn.lookUp.Stop()
	}
	if clientOf(holder) != nil {
		return
	}
	if _, ask := d.find(holder); ask {
		kn.lookUpAt = now.Add(strangeFor)
		kn.lookUp = time.AfterFunc(strangeFor, func() { d.lookUp(holder) })
	}
}
