package rlock

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/identity"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/watchdog"
)

// Identity is the process of a client, as the client reported to Redis. See Options.Anonymous. The
// fields are
//
//	Program string    // the name of the program
//	Host    string    // the name of the host
//	PID     int       // the id of the process
//	Start   time.Time // of the process, by its own clock
//	Label   string    // Options.Label
type Identity = identity.Identity

// thisProcess returns the identity of this process, without a label.
var thisProcess = sync.OnceValue(func() Identity {
	id := Identity{PID: os.Getpid(), Start: started}
	id.Host, _ = os.Hostname() // without a name, the process id identifies the process
	if len(os.Args) > 0 {
		id.Program = filepath.Base(os.Args[0])
	}
	return id
})

var started = time.Now()

// introduction reports to Redis who a client is, while the client holds locks or waits for locks.
// The first hold or wait begins the introduction, and a timer repeats it. If the client is not in
// use when the timer fires, the next use repeats the introduction. A failure is not reported.
type introduction struct {
	client *Client
	state  atomic.Int32 // one of the states below; changed with mu held

	mu      sync.Mutex
	timer   *time.Timer   // until the next; guarded by mu; nil before the first
	sent    chan struct{} // closed after the last command; guarded by mu; nil before the first
	present bool          // Redis may have the key; guarded by mu
	forgets bool          // Close makes Redis forget the key; guarded by mu
}

// The states of an introduction:
//
//	due ──▶ sending ──▶ told ──▶ due
//	 └─────────┴─────────┴─────▶ silent, for good
const (
	silent  int32 = iota // anonymous, or the client has ended
	due                  // at the next use
	sending              // the command is under way
	told                 // Redis has the identity, did not reply or rejected it; until the timer fires
)

const (
	// identityLeases is the number of watchdog leases for which Redis keeps the identity of a client.
	// Eight refreshes may fail. The identity also outlasts the locks of a dead process, so that
	// everybody can see the holder until the lease ends.
	identityLeases = 3
	// farewell bounds how long Close waits for a hung server.
	farewell = 250 * time.Millisecond
)

func (in *introduction) begin(c *Client) {
	in.client = c
	if !c.options.Anonymous {
		in.state.Store(due)
	}
}

// send sends the introduction in the background if it is due. The client calls send after it has
// acquired a lock, or has begun to wait for a lock.
func (in *introduction) send() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.state.Load() != due {
		return
	}
	in.state.Store(sending)
	in.present, in.sent = true, make(chan struct{})
	// This goroutine is not a task of the group, because Close would wait for it as long as rueidis
	// does. Its context cannot end, because rueidis starts to pipeline for a context that can end.
	go func(done chan struct{}) {
		defer close(done)
		c := in.client
		err := ErrClosed // unless the command is sent
		c.calls.WhenIdle(func(ctx context.Context) {
			if in.isWanted() {
				err = identity.Note(ctx, c.redis, c.id, c.identity,
					identityLeases*min(c.options.WatchdogLease, wait.Unlimited/identityLeases))
			}
		})
		in.heard(err)
	}(in.sent)
}

// isWanted reports whether Redis should still get the key. If a lock stays taken, others want to
// know its holder even after Close.
func (in *introduction) isWanted() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return !in.forgets
}

// heard handles the outcome of the command.
func (in *introduction) heard(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.present = err == nil // if Redis has the key nevertheless, the key expires
	if err == nil {
		in.client.transport.Wrote()
	}
	pause := in.client.options.WatchdogLease / 3
	if rediserr.HasCode(err, "NOPERM") {
		pause = transport.ForbiddenFor
	}
	switch {
	case in.state.Load() == silent: // the client has ended
	case in.timer == nil:
		in.state.Store(told)
		in.timer = time.AfterFunc(pause, in.refresh)
	default:
		in.state.Store(told)
		in.timer.Reset(pause)
	}
}

// refresh sends the next introduction now if the client is in use, and otherwise at the next use.
func (in *introduction) refresh() {
	in.mu.Lock()
	if in.state.Load() == told {
		in.state.Store(due) // before the check, so that no use is missed between them
	}
	in.mu.Unlock()
	if in.client.isUsed() {
		in.send()
	}
}

// isUsed reports whether the client holds a lock or waits for a lock.
func (c *Client) isUsed() bool {
	waiting, _ := c.queues.Waiters(func(queueName) bool { return true })
	return waiting > 0 || c.watchdog.Find(func(*watchdog.Lease) bool { return true }) != nil
}

// end ends the introductions and, with forget, makes Redis forget the last introduction. If the
// server did not reply to that, end does not ask the server. end waits for a hung server until the
// farewell is over.
func (in *introduction) end(forget bool) {
	in.mu.Lock()
	in.state.Store(silent)
	if in.timer != nil {
		in.timer.Stop()
	}
	in.forgets = forget
	sent, forget := in.sent, forget && in.present
	in.mu.Unlock()
	if sent == nil {
		return
	}
	limit := time.NewTimer(farewell)
	defer limit.Stop()
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		if <-sent; forget {
			_ = identity.Forget(context.Background(), in.client.redis, in.client.id) // or it expires
		}
	}()
	select {
	case <-forgotten:
	case <-limit.C:
	}
}

const (
	// mostStrangers limits the clients of other processes that a directory remembers.
	mostStrangers = 1000
	// strangeFor is how long a waiter waits for an unknown holder before it looks up who that is.
	strangeFor = time.Second
)

// directory remembers the identities of clients in other processes. Waiters fill it in the
// background.
type directory struct {
	client *Client
	ctx    context.Context // ends with the client
	cancel context.CancelFunc

	mu        sync.Mutex
	entries   map[string]entry // by client id; guarded by mu
	forbidden time.Time        // no look-ups until then, because of the ACL; guarded by mu
}

func (d *directory) begin(c *Client) {
	d.client = c
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// entry is what is known of a client. The identity of a client never changes, but Redis may receive
// the identity late.
type entry struct {
	identity Identity  // zero if Redis did not know
	retry    time.Time // when to ask again if identity is zero
}

// find returns the identity of an owner in another process, or zero if it is unknown. ask says that
// it is time to look up the owner. find sends nothing.
func (d *directory) find(owner string) (found Identity, ask bool) {
	id, _, ok := strings.Cut(owner, ":")
	d.mu.Lock()
	defer d.mu.Unlock()
	e, known := d.entries[id]
	return e.identity, ok && time.Until(d.forbidden) <= 0 &&
		(!known || e.identity == Identity{} && time.Until(e.retry) <= 0)
}

// lookUp asks Redis in the background who an owner is, unless that is known or was asked recently.
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

// enter adds an entry, and may remove another entry.
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

// lookUpLater looks up the holder if it is unknown and stays the holder for a second.
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
