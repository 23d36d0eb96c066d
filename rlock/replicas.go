package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// ask sends a bid, and with Options.SyncReplicas makes sure that enough replicas know of what it did.
func (a *attempt) ask(ctx context.Context, b bid) (answer grant, err error) {
	c := a.client
	if err := c.wire.ready(context.Background()); err != nil {
		return grant{}, err
	}
	if c.options.SyncReplicas == 0 {
		return a.lock.kind.acquire(ctx, c.redis, b)
	}
	answer, err = a.askForReplicas(c.redis, b, false)
	to, redirected := lua.Redirected(err)
	if !redirected || answer.taken {
		return answer, err
	}
	// Shared connections follow the redirection, and make the script known where it leads. What they take is then taken
	// once more, by one that can wait for the replicas of that node.
	if answer, err = a.lock.kind.acquire(ctx, c.redis, b); err != nil || answer.holder != nil {
		return answer, err
	}
	if node, known := c.redis.Nodes()[to.Node]; known {
		answer, err = a.askForReplicas(node, b, to.Asking)
	} else {
		err = &lua.Error{Class: lua.Temporary, Message: "the node " + to.Node + " is not known to the rueidis client yet"}
	}
	answer.taken = true
	return answer, err
}

// askForReplicas sends the bid to a server, and waits for its replicas if the lock is taken. They acknowledge what was
// written through one connection: so everything goes through one, that nobody shares.
func (a *attempt) askForReplicas(server rueidis.Client, b bid, slotMoves bool) (answer grant, err error) {
	err = server.Dedicated(func(connection rueidis.DedicatedClient) (err error) {
		if slotMoves {
			if err = lua.Ask(context.Background(), connection); err != nil {
				return err
			}
		}
		if answer, err = a.lock.kind.acquire(context.Background(), connection, b); err != nil || answer.holder != nil {
			return err
		}
		answer.taken = true
		return a.replicated(connection, b)
	})
	return answer, err
}

// replicated makes sure that enough replicas know of an acquisition, and undoes it if not.
func (a *attempt) replicated(connection rueidis.DedicatedClient, b bid) error {
	c := a.client
	patience := min(c.options.SyncTimeout, b.lease/2)
	if !b.until.IsZero() {
		patience = min(patience, time.Until(b.until)/2) // and the rest is for undoing it
	}
	patience = max(patience, time.Millisecond)
	// Nobody shares this connection: a server that hangs may cost it.
	ctx, cancel := context.WithTimeout(context.Background(), patience+c.options.CommandTimeout)
	defer cancel()
	replicas, err := lua.Acknowledged(ctx, connection, c.options.SyncReplicas, patience)
	if err != nil || replicas >= c.options.SyncReplicas {
		return err
	}
	if reply, err := a.lock.kind.withdraw(c.redis, b); err != nil {
		c.janitor.add(a.leftover(b, 0))
	} else {
		c.refused(a.lock, reply.Refusal)
	}
	return &ReplicationError{Lock: a.lock.name, Want: c.options.SyncReplicas, Got: replicas, Waited: patience}
}
