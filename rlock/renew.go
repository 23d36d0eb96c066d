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
	if len(commands) == 1 {
		return c.renewSlot(ctx, leases)
	}
	return c.renewApart(ctx, leases, slices.Collect(maps.Values(commands)))
}

// renewApart renews leases in parts, given by their indexes, all at the same time. The outcome of a
// part without a reply stays unknown, whatever the others say.
func (c *Client) renewApart(
	ctx context.Context, leases []*watchdog.Lease, parts [][]int,
) ([]watchdog.Outcome, error) {
	var calls sync.WaitGroup
	outcomes, failures := make([]watchdog.Outcome, len(leases)), make([]error, len(parts))
	for n, indexes := range parts {
		calls.Go(func() {
			part := make([]*watchdog.Lease, len(indexes))
			for i, index := range indexes {
				part[i] = leases[index]
			}
			answers, err := c.renewSlot(ctx, part)
			for i, answer := range answers {
				outcomes[indexes[i]] = answer
			}
			failures[n] = err
		})
	}
	calls.Wait()
	return outcomes, cmp.Or(failures...)
}

// renewSlot renews leases that share a slot and a renewal, with one command.
func (c *Client) renewSlot(
	ctx context.Context, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	renewals := make([]lua.Renewal, len(leases))
	for i, l := range leases {
		a := acquisitionOf(l)
		renewals[i] = a.lock.lease(a.owner)
	}
	b := wait.NewBudget(ctx, nil, wait.Unlimited)
	held, _, err := transport.Do(c.calls, b, func(ctx context.Context) ([]bool, error) {
		return lua.Renew(ctx, c.redis, c.options.WatchdogLease, renewals)
	}, func([]bool, error) {})
	var refusal *ServerError
	if len(leases) > 1 && errors.As(err, &refusal) &&
		(refusal.Code == "TRYAGAIN" || refusal.Code == lua.HalfMoved) {
		// The slot is moving, and the locks are on both sides. No command reaches all of them until
		// the move has ended, which may take longer than the leases. A single lock is found
		// wherever it is.
		each := make([][]int, len(leases))
		for i := range leases {
			each[i] = []int{i}
		}
		return c.renewApart(ctx, leases, each)
	}
	if err != nil {
		return nil, err
	}
	outcomes := make([]watchdog.Outcome, len(leases))
	for i, l := range leases {
		outcomes[i] = watchdog.Gone
		if held[i] {
			outcomes[i] = watchdog.Held
			if part := acquisitionOf(l).part; part != nil {
				part.Renewed()
			}
		}
	}
	return outcomes, nil
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
