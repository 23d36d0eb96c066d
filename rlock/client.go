package rlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/flight"
	"holdfast/internal/losses"
	"holdfast/internal/session"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/watchdog"
)

// Client creates locks on a Redis, which may be a single node, a Sentinel group or a cluster. A
// Client uses your rueidis client and never closes it. Create one Client per process and Redis,
// because it is safe for concurrent use. Clients do not share holds, even within a process, because
// each has its own random UUID in Redis.
type Client struct {
	id       string
	redis    rueidis.Client
	options  Options
	identity Identity

	grantLease time.Duration // of a lock granted to a waiter with Watchdog

	transport *transport.Transport
	calls     *transport.Calls
	sessions  *lockSessions
	queues    *lockQueues
	watchdog  *watchdog.Watchdog
	owners    acquisitionsByOwner
	cleaner   *cleaner
	group     *wait.Group
	pool      *wait.Pool // runs the commands of RedLocks, which may hang
	backlog   backlog
	alone     aloneNodes
	releasing sync.Map // owners with a release under way, whose late grant messages are ignored
	losses    losses.Memory[lossKey, *acquisition]
	fairNames namesakes
	kinds     names         // names of locks that others hold as another kind
	peers     sync.Map      // the ids of other clients of this process on the same Redis
	names     sync.Pool     // of *strings.Builder; memory for the names of acquisitions
	acquired  atomic.Uint64 // counts the names

	introduction introduction
	directory    directory

	closing chan struct{} // closed when Close begins
	close   sync.Once
	freed   chan struct{} // closed when Options.ReleaseOnClose is done
	closed  chan struct{} // closed when everything has ended

	forced forcings

	flights flight.Group // of package once

	// leftUntil is the latest end of a left, detached or kept lock, or nil without such a lock.
	leftUntil atomic.Pointer[time.Time]

	publishRefused atomic.Bool // already reported
	classic        atomic.Bool // already reported
	overlapped     atomic.Bool // already reported
	renewalFails   rate        // of reports
	rejections     quota       // of reports
	ownWaits       rate        // of reports
	cycles         rate        // of reports
	renewedAlone   atomic.Uint64

	log      background
	unlogged atomic.Int64 // the number of dropped warnings

	tracing  *tracing                    // nil without a tracer
	observer atomic.Pointer[func(*Hold)] // called with each hold; nil outside tests
}

// New returns a client that creates locks through redis. It sends nothing, and returns [ErrInvalid]
// if redis is nil or an option cannot work. New starts a goroutine, which [Client.Close] ends.
// Close the client before you close redis.
func New(redis rueidis.Client, options Options) (*Client, error) {
	options, err := options.withDefaults()
	if redis == nil {
		err = invalid("the rueidis client is nil; pass what rueidis.NewClient returned")
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	c := &Client{id: uuid.NewString(), options: options, group: wait.NewGroup(),
		grantLease: options.grantLease(),
		sessions:   session.New[sessionKey, owned](),
		queues:     waitqueue.New[queueName, known]().Recycle(),
		closing:    make(chan struct{}), freed: make(chan struct{}), closed: make(chan struct{}),
		backlog: backlog{byLock: make(map[string]debt)}}
	c.owners.all = make(map[string][modes]*acquisition)
	c.log.client, c.log.inline = c, true
	c.pool = wait.NewPool(c.group.Go)
	c.transport = transport.New(redis, transport.Options{
		Client: c.id, Server: options.Server, Logger: options.Logger,
		Classic: options.PubSub == PubSubClassic, Sharded: options.PubSub == PubSubSharded,
		ToThisClient:   options.HandOver != HandOverNone,
		ToOtherClients: options.HandOver == HandOverAnywhere,
		OnGrant:        c.granted, OnLost: c.connectionLost, Warn: c.warn})
	c.redis = eval.Remembering(c.transport.Redis())
	var ready func(context.Context) error
	if c.transport.Clustered() {
		ready = c.transport.Ready
	}
	c.calls = transport.NewCalls(c.group, options.CommandTimeout, ready)
	c.calls.OnLost(c.connectionLost)
	if ready != nil {
		c.calls.OnCluster(c.closing, c.transport.Direct, c.transport.Outdated, c.transport.ReadTopology)
	}
	c.cleaner = newCleaner(c)
	c.tracing = newTracing(c)
	c.identity = thisProcess()
	c.identity.Label = options.Label
	c.introduction.begin(c)
	c.directory.begin(c)
	c.watchdog = watchdog.New(watchdog.Options{Lease: options.WatchdogLease,
		Renew: c.renew, Group: c.renewalGroup, OnFailure: c.renewalFailed,
		OnOverdue: c.renewalsOverdue, OnLate: c.renewalLate})
	clients.Store(c.id, c)
	return c, nil
}

// ID returns the id of the client, a random UUID. The id is the part of an owner before the colon.
func (c *Client) ID() string { return c.id }

// Close ends the client. Waits end with [ErrClosed], renewals stop, and the contexts of holds end
// with the cause ErrClosed.
//
// Close blocks until all background work has ended. If ctx ends first, Close returns the error of
// ctx, and the client continues to close in the background. So give Close a context that lasts, not
// one that SIGTERM has ended.
//
// Close also gives up with an error after 5 seconds, not counting the time for
// Options.ReleaseOnClose, because rueidis may block a command for longer, for example while your
// program uses the whole pool. To end a blocked command, close the rueidis client. A second call of
// Close blocks in the same way.
//
// Waits end at once, except that a wait with a request under way ends with the reply or within a
// quarter of a second. If the context of its caller cannot end, such a wait ends within
// Options.CommandTimeout.
//
// Redis keeps held locks until their leases end, or until you release their holds. [Hold.Unlock]
// still works, but blocks until rueidis gives up if Redis does not respond, because no work can
// continue in the background. With Options.ReleaseOnClose, Close releases all locks first, as
// Unlock would.
//
// If a caller has left without a reply, Close undoes its acquisition once more. If a hung server
// executes the acquisition later, the lock stays held until its lease ends.
//
// Close also deletes the key with the identity of the client, and waits up to a quarter of a second
// for the reply. If the client leaves locks behind, the key stays for three times
// Options.WatchdogLease.
func (c *Client) Close(ctx context.Context) error {
	c.close.Do(func() {
		close(c.closing)
		go c.shutdown()
	})
	select {
	case <-c.freed:
	case <-ctx.Done():
		return closeEnded(ctx)
	}
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	select {
	case <-c.closed:
		return nil
	case <-limit.C:
		return fmt.Errorf("holdfast: Close ended with background work still running after %v, "+
			"because rueidis has not returned from commands; close the rueidis client to end them",
			closeTimeout)
	case <-ctx.Done():
		return closeEnded(ctx)
	}
}

// closeEnded returns the error of Close if ctx has ended.
func closeEnded(ctx context.Context) error {
	return fmt.Errorf("holdfast: the context of Close ended first, so the client goes on closing in "+
		"the background, and locks may not be released yet; give Close a context that lasts: %w",
		ctx.Err())
}

// closeTimeout bounds how long Close waits for background work.
const closeTimeout = 5 * time.Second

// isClosing reports whether Close has begun.
func (c *Client) isClosing() bool { return wait.Fired(c.closing) }

// shutdown ends the background work. Each step ends the source of work for the next step.
func (c *Client) shutdown() {
	defer close(c.closed)
	defer c.part()
	defer clients.Delete(c.id)
	c.cleaner.close()
	if c.options.ReleaseOnClose {
		c.releaseAll()
	}
	close(c.freed)
	c.watchdog.Close()
	left := c.acquisitions()
	for _, a := range left {
		a.end(shut, ErrClosed)
	}
	// Held locks outlast the client, and others may want to know their holder.
	until := c.leftUntil.Load()
	forget := len(left) == 0 && (until == nil || !time.Now().Before(*until))
	c.group.Go(func() { c.introduction.end(forget) })
	c.directory.cancel()
	c.group.Wait()
	c.transport.Close()
}

// leaveUntil notes that a lock stays taken without a hold. Close then keeps the identity of the
// client until over.
func (c *Client) leaveUntil(over time.Time) {
	for last := c.leftUntil.Load(); last == nil || last.Before(over); last = c.leftUntil.Load() {
		if c.leftUntil.CompareAndSwap(last, &over) {
			return
		}
	}
}

// releaseAll releases every hold of this client.
func (c *Client) releaseAll() {
	hung := make(map[string]bool) // nodes whose other locks would also time out
	for _, a := range c.acquisitions() {
		node := c.transport.Node(a.lock.name)
		if hung[node] {
			continue
		}
		err := a.releaseWhole()
		if err != nil && !errors.Is(err, ErrLost) {
			c.warn("holdfast: lock not released on Close; the lock becomes free when its lease ends",
				"lock", a.lock.name, "owner", a.owner, "error", err)
		}
		hung[node] = errors.Is(err, ErrOutcomeUnknown)
	}
}

// mostUnlogged is how many warnings may wait for a blocked log handler before the client drops
// warnings. The loss of ten thousand locks fits.
const mostUnlogged = 1 << 15

// warn logs in the background, in the order of the calls, because a log handler may block, for
// example on a full pipe.
func (c *Client) warn(message string, details ...any) {
	if c.log.hasRoom(mostUnlogged) {
		c.log.tell(func() { c.options.Logger.Warn(message, details...) })
	} else if c.unlogged.Add(1) == 1 {
		c.log.tell(func() {
			c.options.Logger.Warn(fmt.Sprintf(
				"holdfast: %d warnings were dropped, because Options.Logger blocked; do not block "+
					"in a log handler",
				c.unlogged.Swap(0)))
		})
	}
}

// acquisitions returns the current acquisitions of the client.
func (c *Client) acquisitions() []*acquisition {
	var all []*acquisition
	for _, l := range c.watchdog.Leases() {
		all = append(all, l.Subject.(*acquisition))
	}
	return all
}
