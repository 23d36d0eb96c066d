package rlock

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// renew renews a batch of leases on one node, all at the same time: with one command for all kinds
// that are held in the same mode, and on a cluster with one for each slot.
func (c *Client) renew(
	ctx context.Context, _ string, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	type command struct {
		slot uint16
		mode mode
	}
	commands := make(map[command][]int) // indexes into leases
	for i, l := range leases {
		lock := acquisitionOf(l).lock
		by := command{c.transport.Slot(lock.name), lock.mode}
		commands[by] = append(commands[by], i)
	}
	rn := renewal{client: c, leases: leases, outcomes: make([]watchdog.Outcome, len(leases))}
	return rn.outcomes, rn.sendAll(ctx, slices.Collect(maps.Values(commands)))
}

// renewal is the renewal of a batch of leases. The outcome of a part without a reply stays unknown,
// whatever the others say.
type renewal struct {
	client   *Client
	leases   []*watchdog.Lease
	outcomes []watchdog.Outcome
}

// sendAll renews the leases with these indexes, one command for each part, all at the same time.
func (rn renewal) sendAll(ctx context.Context, parts [][]int) error {
	if len(parts) == 1 {
		return rn.send(ctx, parts[0])
	}
	var calls sync.WaitGroup
	failures := make([]error, len(parts))
	for n, part := range parts {
		calls.Go(func() { failures[n] = rn.send(ctx, part) })
	}
	calls.Wait()
	return cmp.Or(failures...)
}

// send renews the leases with these indexes, which share a slot and a mode, with one command.
func (rn renewal) send(ctx context.Context, part []int) error {
	c, renewals := rn.client, make([]lua.Held, len(part))
	for i, index := range part {
		a := acquisitionOf(rn.leases[index])
		renewals[i] = a.lock.held(a.owner)
	}
	b := wait.NewBudget(ctx, nil, wait.Unlimited)
	held, _, err := transport.Do(c.calls, b, func(ctx context.Context) ([]bool, error) {
		return lua.Renew(ctx, c.redis, c.options.WatchdogLease, renewals)
	}, func([]bool, error) {})
	var refusal *ServerError
	if len(part) > 1 && errors.As(err, &refusal) &&
		(refusal.Code == "TRYAGAIN" || refusal.Code == lua.HalfMoved) {
		// The slot is moving, and the locks are on both sides. No command reaches all of them until
		// the move has ended, which may take longer than the leases. A single lock is found
		// wherever it is.
		return rn.sendAll(ctx, slices.Collect(slices.Chunk(part, 1)))
	}
	for i, isHeld := range held {
		index := part[i]
		rn.outcomes[index] = watchdog.Gone
		if isHeld {
			rn.outcomes[index] = watchdog.Held
			if part := acquisitionOf(rn.leases[index]).part; part != nil {
				part.Renewed()
			}
		}
	}
	return err
}

// renewalFailed logs a failed renewal, at most once per third of the lease: the watchdog keeps
// trying, and a node that is down fails many times a second.
func (c *Client) renewalFailed(node string, leases int, err error) {
	now, last := time.Now(), c.renewalReported.Load()
	if last != nil && now.Sub(*last) < c.options.WatchdogLease/3 ||
		!c.renewalReported.CompareAndSwap(last, &now) {
		return
	}
	c.warn("holdfast: leases not renewed; trying again until they end",
		"node", node, "leases", leases, "error", err)
}

func acquisitionOf(l *watchdog.Lease) *acquisition { return l.Value.(*acquisition) }
