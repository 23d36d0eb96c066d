package rlock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/lua"
	"holdfast/watchdog"
)

// renew renews a batch of leases on one node, all at the same time: one command for locks that are held by one owner, one
// for read locks; and on a cluster as many for each slot.
func (c *Client) renew(ctx context.Context, _ string, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	type command struct {
		slot uint16
		side side
	}
	commands := make(map[command][]int) // indexes into leases
	for i, l := range leases {
		lock := holdingOf(l).lock
		as := command{side: lock.side}
		if c.wire.cluster != nil {
			as.slot = lua.Slot(lock.name)
		}
		commands[as] = append(commands[as], i)
	}
	if len(commands) == 1 {
		return c.renewSlot(ctx, leases)
	}
	return renewApart(ctx, leases, slices.Collect(maps.Values(commands)), c.renewSlot)
}

// renewSlot renews leases of one slot and side.
func (c *Client) renewSlot(ctx context.Context, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	outcomes, err := c.renewTogether(ctx, leases)
	var refusal *ServerError
	if len(leases) == 1 || !errors.As(err, &refusal) || refusal.Code != "TRYAGAIN" && refusal.Code != lua.HalfMoved {
		return outcomes, err
	}
	// The slot is moving, and some of the locks are on either side. No command reaches both, until the move has
	// ended, which may take longer than the leases. One lock alone is found wherever it is.
	each := make([][]int, len(leases))
	for i := range leases {
		each[i] = []int{i}
	}
	return renewApart(ctx, leases, each, c.renewTogether)
}

// renewApart renews leases in parts, given by their indexes, all at the same time. What becomes of a part that does not
// answer stays unknown, whatever the others say.
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

// renewTogether renews leases with one command.
func (c *Client) renewTogether(ctx context.Context, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	claims := make([]lua.Renewal, len(leases))
	for i, l := range leases {
		h := holdingOf(l)
		claims[i] = h.lock.kind.claim(h.owner)
	}
	side := holdingOf(leases[0]).lock.side
	p := &patience{ctx: ctx}
	held, left, err := await(c, p, func() ([]bool, error) {
		return c.prolong(side, c.options.WatchdogLease, claims)
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
		if !held[i] {
			continue
		}
		outcomes[i] = watchdog.Held
		if part := holdingOf(leases[i]).part; part != nil {
			part.Renewed()
		}
	}
	return outcomes, nil
}

// prolong makes locks of one side last for lease from now at least, and returns which of them are held as claimed.
func (c *Client) prolong(of side, lease time.Duration, claims []lua.Renewal) ([]bool, error) {
	if of == shared {
		return lua.RenewReads(context.Background(), c.redis, lease, claims)
	}
	return lua.Renew(context.Background(), c.redis, lease, claims)
}

// renewalFailed tells the operator, who need not hear of every try while the watchdog goes on trying: a node that is down
// fails many times a second.
func (c *Client) renewalFailed(node string, leases int, err error) {
	now, last := time.Now(), c.renewalReported.Load()
	if last != nil && now.Sub(*last) < c.options.WatchdogLease/3 || !c.renewalReported.CompareAndSwap(last, &now) {
		return
	}
	c.warn("holdfast: leases not renewed; trying again until they end",
		"node", node, "leases", leases, "error", err)
}

func holdingOf(l *watchdog.Lease) *holding { return l.Value.(*holding) }
