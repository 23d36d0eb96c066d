package rlock

import (
	"context"
	"sync"

	"holdfast/lua"
	"holdfast/watchdog"
)

// renew renews a batch of leases on one node: one command, or on a cluster one for each slot, all at the same time. What
// becomes of a slot that does not answer before ctx ends stays unknown, whatever the others say.
func (c *Client) renew(ctx context.Context, _ string, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	if c.wire.cluster == nil {
		return c.renewSlot(ctx, leases)
	}
	slots := make(map[uint16][]int) // slot -> indexes into leases
	for i, l := range leases {
		slot := lua.Slot(holdingOf(l).lock.name)
		slots[slot] = append(slots[slot], i)
	}
	var (
		calls    sync.WaitGroup
		mu       sync.Mutex
		outcomes = make([]watchdog.Outcome, len(leases)) // guarded by mu
		failure  error                                   // guarded by mu; one of them
	)
	for _, indexes := range slots {
		calls.Go(func() {
			batch := make([]*watchdog.Lease, len(indexes))
			for i, index := range indexes {
				batch[i] = leases[index]
			}
			answers, err := c.renewSlot(ctx, batch)
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

// renewSlot renews leases with one command.
func (c *Client) renewSlot(ctx context.Context, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	claims := make([]lua.Claim, len(leases))
	for i, l := range leases {
		h := holdingOf(l)
		claims[i] = lua.Claim{Lock: h.lock.name, Owner: h.owner}
	}
	p := &patience{ctx: ctx}
	held, err, left := await(c, p, func() ([]bool, error) {
		return lua.Renew(context.Background(), c.redis, c.options.WatchdogLease, claims)
	}, func([]bool, error) {})
	if left {
		err = errNoAnswer
	}
	if err != nil {
		return nil, err
	}
	outcomes := make([]watchdog.Outcome, len(held))
	for i := range held {
		outcomes[i] = watchdog.Gone
		if held[i] {
			outcomes[i] = watchdog.Held
		}
	}
	return outcomes, nil
}

// renewalFailed tells the operator. The watchdog goes on trying until the leases end.
func (c *Client) renewalFailed(node string, leases int, err error) {
	c.options.Logger.Warn("holdfast: leases not renewed; trying again until they end",
		"node", node, "leases", leases, "error", err)
}

func holdingOf(l *watchdog.Lease) *holding { return l.Value.(*holding) }
