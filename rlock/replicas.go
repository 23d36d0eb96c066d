package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
)

// SyncConnected is a value for Options.SyncReplicas. One replica must acknowledge each acquisition,
// unless the master has no connected replica. Redisson does the same by default with Sentinel and
// Cluster. So a master without replicas continues to grant locks, although a failover may lose
// them, and the client logs a warning. While the program acquires locks there, the client asks the
// master once a second whether a replica is back.
//
// A hung replica counts as connected until the master drops the replica (repl-timeout). A replica
// that still copies the data of the master does not count.
const SyncConnected int = -1

// lookForReplicas is how often the client asks a master without replicas whether it has a replica.
const lookForReplicas = time.Second

// aloneNodes has the masters without a replica, and the time of their last report.
type aloneNodes struct{ reported sync.Map } // of time.Time, by node

// askReplicas sends the request, and makes sure that enough replicas have an acquisition.
func (at *attempt) askReplicas(ctx context.Context) (got reply, err error) {
	c, r := at.client, at.request
	master := server{c.redis, c.transport.Node(at.lock.name)}
	got, err = at.askServer(ctx, master, r, false)
	for sends := 1; sends < transport.MostSends && !got.taken; sends++ {
		// The connection may have been closed long ago, as in [transport.Do], or lead to a master that
		// has become a replica. The pool has closed that connection, and the next connection may work.
		before := err
		if !transport.Lost(err) && !rediserr.Demoted(err) {
			break
		}
		got, err = at.askServer(ctx, master, r, false)
		if transport.Lost(before) {
			err = transport.Resent(before, err)
		}
	}
	address, asking, redirected := rediserr.Redirected(err)
	if !redirected || got.taken {
		return got, err
	}
	// Shared connections follow the redirection, and load the script there. Acquire the lock once more
	// afterwards, on a connection that can wait for the replicas of that node.
	got, err = at.lock.kind.acquire(ctx, c.redis, r)
	if err != nil || got.holder != nil {
		return got, err
	}
	if node, known := c.redis.Nodes()[address]; known {
		got, err = at.askServer(ctx, server{node, address}, r, asking)
	} else {
		err = &rediserr.Error{Class: rediserr.ClassTemporary,
			Message: "the node " + address + " is not known to the rueidis client yet"}
	}
	got.taken = true
	return got, err
}

// server is a master, with its name and a client that reaches it. The client may be the client of
// the whole cluster.
type server struct {
	rueidis.Client
	name string
}

// askServer sends the request to a server. If the lock is acquired, askServer waits for the
// replicas of the server. WAIT counts the writes of its own connection, so all commands go through
// one connection that is not shared. asking says that the slot moves to this server.
func (at *attempt) askServer(ctx context.Context, master server, r request, asking bool,
) (got reply, err error) {
	err = master.Dedicated(func(connection rueidis.DedicatedClient) (err error) {
		if asking {
			err = transport.Ask(ctx, connection)
			if err != nil {
				return err
			}
		}
		sent := time.Now()
		got, err = at.lock.kind.acquire(ctx, connection, r)
		if err != nil || got.holder != nil {
			return err
		}
		got.taken, got.sent = true, sent
		got.short, err = at.replicated(connection, master.name, r)
		return err
	})
	return got, err
}

// replicated makes sure that enough replicas have an acquisition. Otherwise replicated undoes the
// acquisition, and returns the number of replicas that have it. An error means that the number is
// unknown.
func (at *attempt) replicated(connection rueidis.CoreClient, node string, r request,
) (*ReplicationError, error) {
	c := at.client
	timeout := min(c.options.SyncTimeout, r.lease/2)
	if !r.until.IsZero() {
		timeout = min(timeout, time.Until(r.until)/2) // the rest is for undoing the acquisition
	}
	timeout = max(timeout, time.Millisecond)
	// The connection is not shared, because a hung server may cost the connection.
	until := time.Now().Add(timeout).Add(c.options.CommandTimeout) // the sum of both could overflow
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	want := c.options.SyncReplicas
	if want == SyncConnected {
		want = 1
		if reported, known := c.alone.reported.Load(node); known &&
			(time.Since(reported.(time.Time)) < lookForReplicas || c.isAlone(ctx, connection, node)) {
			return nil, nil
		}
	}
	replicas, err := transport.Acknowledged(ctx, connection, want, timeout)
	if err != nil || replicas >= want {
		return nil, err
	}
	if c.options.SyncReplicas == SyncConnected && c.isAlone(ctx, connection, node) {
		return nil, nil
	}
	if undo := at.cleanup(r, 0); !c.cleanUp(undo) {
		c.cleaner.add(undo)
	}
	return &ReplicationError{Lock: at.lock.name, Want: want, Got: replicas,
		Waited: timeout}, nil
}

// isAlone asks the master whether it has no replica, and remembers the reply. Without a reply,
// isAlone assumes that the master has a replica.
func (c *Client) isAlone(ctx context.Context, connection rueidis.CoreClient, node string) bool {
	alone, err := transport.Alone(ctx, connection)
	if err != nil || !alone {
		c.alone.reported.Delete(node)
		return false
	}
	if _, known := c.alone.reported.Swap(node, time.Now()); !known {
		c.warn("holdfast: no replica is connected to the master, so a failover can lose locks; "+
			"bring replicas back, or set Options.SyncReplicas to 1 to acquire no locks until then",
			"node", node)
	}
	return true
}
