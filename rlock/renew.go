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

// renewal is the command that renews leases of some kinds, and says which of them are held as
// claimed.
type renewal struct {
	send func(context.Context, rueidis.CoreClient, time.Duration, []lua.Renewal) ([]bool, error)
}

// renew renews a batch of leases on one node, all at the same time: one command for all whose kinds
// have the same renewal; and on a cluster as many for each slot.
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
		by := command{c.transport.Slot(lock.name), lock.kind.renewal()}
		commands[by] = append(commands[by], i)
	}
	if len(commands) == 1 {
		return c.renewSlot(ctx, leases)
	}
	return renewApart(ctx, leases, slices.Collect(maps.Values(commands)), c.renewSlot)
}

// renewSlot renews leases of one slot and renewal.
func (c *Client) renewSlot(
	ctx context.Context, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	outcomes, err := c.renewBatch(ctx, leases)
	var refusal *ServerError
	if len(leases) == 1 || !errors.As(err, &refusal) ||
		refusal.Code != "TRYAGAIN" && refusal.Code != lua.HalfMoved {
		return outcomes, err
	}
	// The slot is moving, and some of the locks are on either side. No command reaches both until
	// the move has ended, which may take longer than the leases. One lock alone is found wherever
	// it is.
	each := make([][]int, len(leases))
	for i := range leases {
		each[i] = []int{i}
	}
	return renewApart(ctx, leases, each, c.renewBatch)
}

// renewApart renews leases in parts, given by their indexes, all at the same time. What becomes of
// a part that does not answer stays unknown, whatever the others say.
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
		renewals[i] = a.lock.kind.lease(a.owner)
	}
	by := acquisitionOf(leases[0]).lock.kind.renewal()
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

// renewalFailed tells the operator, who need not hear of every try while the watchdog goes on
// trying: a node that is down fails many times a second.
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
