package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// renewalGroup returns the node of a lease, and equal numbers for leases that one command can
// renew. Leases of different modes have different numbers, and so have leases of different slots if
// the server checks slots.
func (c *Client) renewalGroup(l *watchdog.Lease) (node string, split uint64) {
	lock := l.Subject.(*acquisition).lock
	node = c.transport.Node(lock.name)
	if c.transport.OneByOne() {
		return node, 1<<32 + c.renewedAlone.Add(1)
	}
	return node, uint64(c.transport.Slot(lock.name))<<8 | uint64(lock.mode)
}

// renew renews leases on one node with one command for all kinds of locks. The leases share a slot
// and a mode. The watchdog calls renew (watchdog/schedule.go). renew waits for the reply for as
// long as the reply can count. A worker sends the command, and no timeout decides its outcome.
func (c *Client) renew(ctx context.Context, _ string, leases []*watchdog.Lease,
) ([]watchdog.Outcome, error) {
	outcomes := make([]watchdog.Outcome, len(leases))
	renewals, names := make([]lua.Held, 0, len(leases)), make([]string, 0, len(leases))
	for i, l := range leases {
		a := l.Subject.(*acquisition)
		a.reportDropped()
		if !a.MayRenew() {
			outcomes[i] = watchdog.Stopped
			continue
		}
		renewals, names = append(renewals, a.lock.held(a.owner)), append(names, a.lock.name)
	}
	if len(renewals) == 0 {
		return outcomes, nil
	}
	b, sent := wait.NewBudget(ctx, nil, wait.Unlimited), time.Now()
	held, _, err := transport.SendByWorker(c.calls, transport.Renew, b, renewals,
		func(renewals []lua.Held, ctx context.Context) ([]bool, error) {
			return lua.Renew(ctx, c.redis, c.options.WatchdogLease, renewals)
		}, func([]lua.Held, []bool, error) {})
	rejected := rejectsAKey(err)
	if rejected {
		c.transport.Rejected(err, names)
		if len(renewals) == 1 {
			err = &rejectedError{names[0], err}
		}
	}
	n := 0
	for i, l := range leases {
		if outcomes[i] == watchdog.Stopped {
			continue
		}
		a := l.Subject.(*acquisition)
		switch {
		case err == nil && held[n]:
			outcomes[i] = watchdog.Held
			a.renewed(sent)
		case err == nil:
			outcomes[i] = watchdog.Gone
		default:
			if rejected {
				outcomes[i] = watchdog.Rejected
			}
			// Otherwise the lock was released, or the watchdog tries again at once.
			if a.lasts() && (!rejected || len(renewals) == 1) {
				c.renewalRejected(a, err)
				if ctx.Err() == nil { // else it was reported as overdue, or the locks are lost
					c.tracing.renewed(a, err)
				}
			}
		}
		n++
	}
	return outcomes, err
}

// renewed notes a renewal that was sent at sent or later, unless the acquisition has ended.
func (a *acquisition) renewed(sent time.Time) {
	if !a.lasts() {
		return
	}
	a.mu.Lock()
	if rejection := (*rejectedError)(nil); errors.As(a.unrenewed, &rejection) {
		a.unrenewed = nil
	}
	a.mu.Unlock()
	a.client.tracing.renewed(a, nil)
	if a.part != nil {
		a.part.Renewed(sent)
	}
}

// rejectedError is why Redis does not renew a lock.
type rejectedError struct {
	lock string
	err  error
}

func (e *rejectedError) Error() string {
	return fmt.Sprintf("Redis rejected the renewal: %v", e.err)
}

func (e *rejectedError) Unwrap() error { return e.err }

// rejectsAKey reports whether one of the keys may be the reason why the server rejected a command.
// Nearly every rejection may have such a reason. The excluded codes are about the whole server, the
// user, or the command.
func rejectsAKey(err error) bool {
	var rejection *ServerError
	switch {
	case !errors.As(err, &rejection), rejection.Code == "":
		return false // the error is not from the server
	case rejection.Class == ClassUnknown:
		return rejection.Code == rediserr.HalfMoved
	}
	return !rediserr.HasCode(rejection, "LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS",
		"MAXCLIENTS", "UNBLOCKED", "READONLY", "MISCONF", "OOM", "NOAUTH", "WRONGPASS", "NOPROTO",
		"DENIED", rediserr.NoCommand, rediserr.Unsupported)
}

// mostRejected is how many locks the warnings name in each third of the lease.
const mostRejected = 10

// renewalRejected notes why Redis does not renew a lock, for the error of a later loss.
// renewalRejected logs the reason once, until a renewal of the lock succeeds again.
func (c *Client) renewalRejected(a *acquisition, err error) {
	var rejection *rejectedError
	if !errors.As(err, &rejection) {
		return
	}
	a.mu.Lock()
	first := a.unrenewed == nil
	if first {
		a.unrenewed = rejection
	}
	a.mu.Unlock()
	if first && c.rejections.allow(mostRejected, c.options.WatchdogLease/3) {
		c.warn("holdfast: lock not renewed, because Redis rejects the renewal; holdfast tries again "+
			"until the lease ends",
			"lock", a.lock.name, "owner", a.owner, "error", rejection.err)
	}
}

// renewalFailed logs a failed renewal, once per third of the lease, because a node may fail often.
func (c *Client) renewalFailed(node string, leases int, err error) {
	var rejection *rejectedError
	if errors.As(err, &rejection) {
		return // the warning with the name of the lock was logged before
	}
	if c.renewalFails.allows(c.options.WatchdogLease / 3) {
		c.warn("holdfast: leases not renewed; holdfast tries again until they end",
			"node", node, "leases", leases, "error", err)
	}
}

// renewalsOverdue reports to the tracer that Redis has not replied yet. If no reply comes, the lock
// is lost before its renewal has failed. A late reply is reported as another renewal.
func (c *Client) renewalsOverdue(leases []*watchdog.Lease) {
	for _, l := range leases {
		c.tracing.renewed(l.Subject.(*acquisition), transport.ErrNoReply)
	}
}

// renewalLate logs that renewals take too long.
func (c *Client) renewalLate(node string, late watchdog.Lateness) {
	c.warn("holdfast: renewals take longer than a third of Options.WatchdogLease, and a lock is lost "+
		"when its lease ends; find out why Redis or the network is slow, or set a longer lease",
		"node", node, "late", late.Late, "leases", late.Leases,
		"left", late.Left.Round(time.Millisecond), "lease", c.options.WatchdogLease)
}

// connectionLost renews all locks at once. The server may have restarted without its data, or
// another server may have taken its place, so another holder may come. The transport calls
// connectionLost when a command or a subscription loses its connection, and when a command dials. A
// client that neither sends nor waits notices at its next renewal, within a third of the lease.
func (c *Client) connectionLost() { c.watchdog.RenewNow() }
