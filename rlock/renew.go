package rlock

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// renewal is one lease to be renewed, and its outcome: unknown without a reply.
type renewal struct {
	*acquisition
	outcome *watchdog.Outcome
}

// renew renews a batch of leases on one node, all at the same time: with one command for all kinds
// that are held in the same mode, and on a cluster with one for each slot. The watchdog calls it
// when watchdog/schedule.go says so.
func (c *Client) renew(ctx context.Context, _ string, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	type command struct {
		slot uint16
		mode mode
	}
	commands, outcomes := make(map[command][]renewal), make([]watchdog.Outcome, len(leases))
	for i, l := range leases {
		a := l.Value.(*acquisition)
		a.reportDropped()
		if !a.mayRenew() {
			outcomes[i] = watchdog.Stopped
			continue
		}
		by := command{c.transport.Slot(a.lock.name), a.lock.mode}
		commands[by] = append(commands[by], renewal{a, &outcomes[i]})
	}
	return outcomes, c.renewAll(ctx, slices.Collect(maps.Values(commands)))
}

// renewAll sends one command for each chunk, all at the same time.
func (c *Client) renewAll(ctx context.Context, chunks [][]renewal) error {
	if len(chunks) == 1 {
		return c.renewChunk(ctx, chunks[0])
	}
	var calls sync.WaitGroup
	failures := make([]error, len(chunks))
	for n, chunk := range chunks {
		calls.Go(func() { failures[n] = c.renewChunk(ctx, chunk) })
	}
	calls.Wait()
	return cmp.Or(failures...)
}

// renewChunk renews leases that share a slot and a mode, with one command.
func (c *Client) renewChunk(ctx context.Context, chunk []renewal) error {
	renewals := make([]lua.Held, len(chunk))
	for i, r := range chunk {
		renewals[i] = r.lock.held(r.owner)
	}
	b := wait.NewBudget(ctx, nil, wait.Unlimited)
	held, _, err := transport.Do(c.calls, transport.Keep, b, func(ctx context.Context) ([]bool, error) {
		return lua.Renew(ctx, c.redis, c.options.WatchdogLease, renewals)
	}, func([]bool, error) {})
	var refusal *ServerError
	if len(chunk) > 1 && errors.As(err, &refusal) &&
		(refusal.Code == "TRYAGAIN" || refusal.Code == lua.HalfMoved) {
		// The locks are on both sides of a slot that moves, perhaps for long: find them one by one.
		return c.renewAll(ctx, slices.Collect(slices.Chunk(chunk, 1)))
	}
	if err != nil {
		for _, r := range chunk {
			c.tracing.renewed(r.acquisition, err)
		}
		return err
	}
	for i, r := range chunk {
		if *r.outcome = watchdog.Gone; held[i] {
			*r.outcome = watchdog.Held
			c.tracing.renewed(r.acquisition, nil)
			if r.part != nil {
				r.part.Renewed()
			}
		}
	}
	return nil
}

// renewalFailed logs a failed renewal, once per third of the lease: a node may fail very often.
func (c *Client) renewalFailed(node string, leases int, err error) {
	if c.renewalFails.allows(c.options.WatchdogLease / 3) {
		c.warn("holdfast: leases not renewed; trying again until they end",
			"node", node, "leases", leases, "error", err)
	}
}
