package rlock

import (
	"context"
	"errors"
	"fmt"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
)

// partRelease is the release of one lock of a batch, to a number of levels.
type partRelease struct {
	*acquisition
	left int
	err  *error
}

// releaseBatch releases holds of several plain locks of one client and slot, with one script. It
// returns one error for each.
func releaseBatch(holds []*Hold) []error {
	errs := make([]error, len(holds))
	c := holds[0].level.acquisition.(*acquisition).client
	b := wait.NewBudget(context.Background(), nil, c.options.CommandTimeout)
	defer b.Stop()
	releases := make([]partRelease, 0, len(holds))
	// busy has the holds whose session another call of the owner has locked, perhaps for long. They
	// come last: no session stays locked while this call is blocked on another.
	var busy []int
	for i, h := range holds {
		a := h.level.acquisition.(*acquisition)
		if !h.level.beginRelease() {
			errs[i] = ofEnded(ErrReleased)
		} else if !a.session.TryLock() {
			busy = append(busy, i)
		} else if left, err := a.releaseLevel(h.level); err == nil {
			releases = append(releases, partRelease{a, left, &errs[i]})
		} else {
			errs[i] = err
			a.session.Unlock()
		}
	}
	func() {
		defer wait.Together(len(busy), func(n int) { // even if a hook around rueidis ends sendAll
			h := holds[busy[n]]
			errs[busy[n]] = h.level.acquisition.Release(h)
		})
		c.sendAll(b, releases)
	}()
	for i, h := range holds {
		if !errors.Is(errs[i], ErrNotHeld) { // else another call releases it, and tells
			h.level.trace.Load().released(errs[i], false)
		}
		wrap(&errs[i], h.Name())
	}
	return errs
}

// sendAll sends the releases and unlocks their sessions. A hook around rueidis may end it: what is
// left in Redis then is cleaned up in the background.
func (c *Client) sendAll(b *wait.Budget, releases []partRelease) {
	returned := false
	defer func() {
		for _, p := range releases {
			if p.left == 0 {
				if !returned {
					c.cleaner.add(p.cleanup())
				}
				p.cleanUpLate()
			}
			p.session.Unlock()
		}
	}()
	if len(releases) > 0 {
		c.sendBatch(b, releases)
	}
	returned = true
}

// sendBatch sends the releases. The caller has their sessions locked. Those that get no reply or
// are refused are sent again one by one: one lock may be the reason, such as a key that the ACL
// forbids, and while a slot moves, keys may be reached one by one but not together.
func (c *Client) sendBatch(b *wait.Budget, releases []partRelease) {
	commands, names := make([]lua.BatchPart, len(releases)), make([]string, len(releases))
	for i, p := range releases {
		names[i] = p.lock.name
		commands[i] = lua.BatchPart{Lock: p.lock.name, Channel: p.lock.waiting.topic.Channel,
			Owner: p.owner, Count: p.left}
	}
	if !c.transport.Together(names) {
		for _, p := range releases {
			*p.err = p.send(b, p.left, nil)
		}
		return
	}
	type replies = []lua.BatchReleased
	release := func(ctx context.Context) (replies, error) {
		return lua.ReleaseBatch(ctx, c.redis, c.transport.Channels(), commands)
	}
	late := func(got replies, err error) {
		for i, p := range releases {
			refusal := err
			if err == nil {
				refusal = got[i].Err
			}
			p.handleLateReply(p.left, refusal)
		}
	}
	got, state, err := transport.Do(c.calls, transport.Release, b, release, late)
	c.transport.Rejected(err, names)
	for i, p := range releases {
		refusal := err
		if err == nil {
			refusal = got[i].Err
		}
		switch {
		case state == transport.Detached:
			*p.err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			if p.left == 0 {
				p.step(giveUp)
			}
		case refusal == nil:
			*p.err = p.handleReply(got[i].Released, p.left, false)
		default:
			*p.err = p.send(b, p.left, refusal)
		}
	}
}
