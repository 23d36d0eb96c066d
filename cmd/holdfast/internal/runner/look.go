package runner

import (
	"context"
	"strings"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/identity"
	"holdfast/rlock"
)

// look returns who holds the lock, and who waits for a fair one. Unlike [locks.Inspect] it sends
// only what the holder of such a lock may send, because each refused command is noted by the
// server.
func (o Options) look(ctx context.Context, l *lock) (found locks.Lock, err error) {
	of := []*rlock.Lock{o.Kind.of(l.clients[0], o.Name)}
	if o.Kind == Read || o.Kind == Write { // each has only the holds of its own mode
		of = []*rlock.Lock{Read.of(l.clients[0], o.Name), Write.of(l.clients[0], o.Name)}
	}
	found.Name = o.Name
	for _, lock := range of {
		info, err := lock.Info(ctx)
		if err != nil {
			return found, err
		}
		switch {
		case info.TTL == rlock.NoExpiry:
			found.TTL = info.TTL
		case found.TTL != rlock.NoExpiry:
			found.TTL = max(found.TTL, info.TTL)
		}
		if info.Locked && info.Readers == nil {
			found.Holders = append(found.Holders, locks.Holder{Owner: info.Owner, Count: info.Count,
				Mode: info.Mode})
		}
		for owner, count := range info.Readers {
			found.Holders = append(found.Holders, locks.Holder{Owner: owner, Count: count, Mode: "read"})
		}
		for _, owner := range info.Queue {
			found.Waiters = append(found.Waiters, locks.Waiter{Owner: owner})
		}
	}
	if len(found.Holders) == 1 { // more are counted only
		client := &found.Holders[0].Client
		client.ID, _, _ = strings.Cut(found.Holders[0].Owner, ":")
		client.Identity, client.Held, _ = identity.ReadHold(ctx, l.redis[0], client.ID) // or unknown
	}
	return found, nil
}

// heldBy says who holds a lock: its process, if Redis knows that. "" if nobody does any more.
func (o Options) heldBy(l *lock) string {
	ctx, cancel := context.WithTimeout(context.Background(), redrawn)
	defer cancel()
	found, err := o.look(ctx, l)
	if err != nil || len(found.Holders) == 0 {
		return ""
	}
	return view.Line(found, 0)
}
