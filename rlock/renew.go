package rlock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// renewal is the command that renews the leases of some kinds. It reports which of them are still
// held.
type renewal struct {
	send func(context.Context, rueidis.CoreClient, time.Duration, []lua.Renewal) ([]bool, error)
}

// renew renews a batch of leases on one node, all at the same time: with one command for all kinds
// that share a renewal, and on a cluster with one for each slot.
func (c *Client) renew(
	ctx context.Context, _ string, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	type command struct {
		slot uint16
		by   *renewal
	}
	commands := make(map[command][]int) // indexes into leases
	for i, l := range leases {
		lock := acquisitionOf(l).lock
		by := command{c.transport.Slot(lock.name), lock.renewal}
		commands[by] = append(commands[by], i)
	}
	if len(commands) == 1 {
		return c.renewSlot(ctx, leases)
	}
	return renewApart(ctx, leases, slices.Collect(maps.Values(commands)), c.renewSlot)
}

// renewSlot renews leases that share a slot and a renewal.
func (c *Client) renewSlot(
	ctx context.Context, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	outcomes, err := c.renewBatch(ctx, leases)
	var refusal *ServerError
	if len(leases) == 1 || !errors.As(err, &refusal) ||
		refusal.Code != "TRYAGAIN" && refusal.Code != lua.HalfMoved {
		return outcomes, err
	}
	// The slot is moving, and the locks are on both sides. No command reaches all of them until the
	// move has ended, which may take longer than the leases. A single lock is found wherever it is.
	each := make([][]int, len(leases))
	for i := range leases {
		each[i] = []int{i}
	}
	return renewApart(ctx, leases, each, c.renewBatch)
}

// renewApart renews leases in parts, given by their indexes, all at the same time. The outcome of a
// part without a reply stays unknown, whatever the others say.
func renewApart(ctx context.Context, leases []*watchdog.Lease, parts [][]int,
	renew func(context.Context, []*watchdog.Lease) ([]watchdog.Outcome, error),
) ([]watchdog.Outcome, error) {
	var (
		calls    sync.WaitGroup
		mu       sync.Mutex
		outcomes = make([]watchdog.Outcome, len(leases)) // guarded by mu
		failure  error                                   // guarded by mu; one of them
	)
	for _, indexes := range parts {
		calls.Go(func() {
			part := make([]*watchdog.Lease, len(indexes))
			for i, index := range indexes {
				part[i] = leases[index]
			}
			answers, err := renew(ctx, part)
			mu.Lock()
			defer mu.Unlock()
			for i, answer := range answers {
				outcomes[indexes[i]] = answer
			}
			if err != nil {
				failure = err
			}
		})
	}
	calls.Wait()
	return outcomes, failure
}

// renewBatch renews leases with one command.
func (c *Client) renewBatch(
	ctx context.Context, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	renewals := make([]lua.Renewal, len(leases))
	for i, l := range leases {
		a := acquisitionOf(l)
		renewals[i] = a.lock.lease(a.owner)
	}
	by := acquisitionOf(leases[0]).lock.renewal
	var b wait.Budget
	b.Begin(ctx, nil, wait.Unlimited)
	held, _, err := transport.Do(c.calls, &b, func(ctx context.Context) ([]bool, error) {
		return by.send(ctx, c.redis, c.options.WatchdogLease, renewals)
	}, func([]bool, error) {})
	if err != nil {
		return nil, err
	}
	outcomes := make([]watchdog.Outcome, len(held))
	for i := range held {
		outcomes[i] = watchdog.Gone
		if !held[i] {
			continue
		}
		outcomes[i] = watchdog.Held
		if part := acquisitionOf(leases[i]).part; part != nil {
			part.Renewed()
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
