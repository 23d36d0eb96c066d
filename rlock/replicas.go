package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/transport"
	"holdfast/lua"
)

// ask sends the request. With Options.SyncReplicas, enough replicas must know of an acquisition.
func (at *attempt) ask(ctx context.Context) (got reply, err error) {
	c, r := at.client, at.request
	if err := c.transport.Ready(context.Background()); err != nil {
		return reply{}, err
	}
	if c.options.SyncReplicas == 0 {
		return at.lock.kind.acquire(ctx, c.redis, r)
	}
	got, err = at.askServer(ctx, c.redis, r, false)
	for sends := 1; sends < transport.MostSends && !got.taken; sends++ {
		// That connection may have been closed long ago, as in [transport.Do], or lead to a master
		// that has become a replica. The pool has closed it, and the next one may do better.
		before := err
		if !transport.Lost(err) && !lua.Demoted(err) {
			break
		}
		got, err = at.askServer(ctx, c.redis, r, false)
		if transport.Lost(before) {
			err = transport.Resent(before, err)
		}
	}
	address, asking, redirected := lua.Redirected(err)
	if !redirected || got.taken {
		return got, err
	}
	// Shared connections follow the redirection, and load the script there. What they acquire is
	// acquired once more, on a connection that can wait for the replicas of that node.
	if got, err = at.lock.kind.acquire(ctx, c.redis, r); err != nil || got.holder != nil {
		return got, err
	}
	if node, known := c.redis.Nodes()[address]; known {
		got, err = at.askServer(ctx, node, r, asking)
	} else {
		err = &lua.Error{Class: lua.ClassTemporary,
			Message: "the node " + address + " is not known to the rueidis client yet"}
	}
	got.taken = true
	return got, err
}

// askServer sends the request to a server, and waits for its replicas if the lock is acquired. WAIT
// counts what was written through the same connection, so all commands go through one that is not
// shared. asking says that the slot moves to this server.
func (at *attempt) askServer(ctx context.Context, server rueidis.Client, r request, asking bool,
) (got reply, err error) {
	err = server.Dedicated(func(connection rueidis.DedicatedClient) (err error) {
		if asking {
			if err = lua.Ask(ctx, connection); err != nil {
				return err
			}
		}
		if got, err = at.lock.kind.acquire(ctx, connection, r); err != nil ||
			got.holder != nil {
			return err
		}
		got.taken = true
		got.short, err = at.replicated(connection, r)
		return err
	})
	return got, err
}

// replicated makes sure that enough replicas know of an acquisition. Otherwise it undoes it, and
// returns how many do. An error means that their number is not known.
func (at *attempt) replicated(connection rueidis.DedicatedClient, r request,
) (*ReplicationError, error) {
	c := at.client
	timeout := min(c.options.SyncTimeout, r.lease/2)
	if !r.until.IsZero() {
		timeout = min(timeout, time.Until(r.until)/2) // the rest is for undoing it
	}
	timeout = max(timeout, time.Millisecond)
	// The connection is not shared: a server that hangs may cost it.
	until := time.Now().Add(timeout).Add(c.options.CommandTimeout) // their sum could overflow
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	replicas, err := lua.Acknowledged(ctx, connection, c.options.SyncReplicas, timeout)
	if err != nil || replicas >= c.options.SyncReplicas {
		return nil, err
	}
	if undo := at.cleanup(r, 0); !c.cleanUp(undo) {
		c.cleaner.add(undo)
	}
	return &ReplicationError{Lock: at.lock.name, Want: c.options.SyncReplicas, Got: replicas,
		Waited: timeout}, nil
}
