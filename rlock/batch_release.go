package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
)

// releaseBatch gives back holds of several plain locks of one client and slot, with one script.
// Each has an error of its own.
func releaseBatch(holds []*Hold) []error {
	errs := make([]error, len(holds))
	releases := make([]partRelease, 0, len(holds))
	c := holds[0].acquisition.(*acquisition).client
	var b wait.Budget
	b.Begin(context.Background(), nil, c.options.CommandTimeout)
	defer b.Stop()
	var locked []*lockSession
	var busy []int
	for i, h := range holds {
		a := h.acquisition.(*acquisition)
		switch {
		case !h.claimRelease():
			errs[i] = ofEnded(ErrReleased)
		case !a.session.TryLock():
			busy = append(busy, i)
		default:
			locked = append(locked, a.session)
			if a.registered {
				c.grants.releasing(a.owner, true)
				defer c.grants.releasing(a.owner, false)
			}
			var left int
			if left, errs[i] = a.releaseLevel(h, time.Now()); errs[i] == nil {
				releases = append(releases, partRelease{acquisition: a, left: left, err: &errs[i]})
			}
		}
	}
	if len(releases) > 0 {
		sendBatch(c, &b, releases)
	}
	for _, p := range releases {
		if p.left == 0 {
			p.cleanUpLate()
		}
	}
	for _, s := range locked {
		s.Unlock()
	}
	// Another call of the same owner has locked these sessions, perhaps for long. None is kept
	// locked while waiting for them.
	for _, i := range busy {
		errs[i] = holds[i].acquisition.Release(holds[i])
	}
	for i, h := range holds {
		wrap(&errs[i], h.Name())
	}
	return errs
}

// partRelease is an acquisition that is to be left with so many levels.
type partRelease struct {
	*acquisition
	left int
	err  *error
}

// sendBatch tells Redis what is left of each. The caller has their sessions locked. Those that are
// refused for the time being are sent again, by themselves.
func sendBatch(c *Client, b *wait.Budget, releases []partRelease) {
	var (
		delay   wait.Backoff
		unknown bool // an earlier command may have been executed
		last    error
	)
	fail := func(err error) {
		for _, p := range releases {
			*p.err = err
		}
	}
	for {
		asked := releases
		replies, state, err := transport.Do(
			c.calls,
			b,
			func(ctx context.Context) ([]lua.BatchReleased, error) {
				return lua.ReleaseBatch(ctx, c.redis, batchReleases(asked))
			},
			func(replies []lua.BatchReleased, err error) {
				for i, p := range asked {
					if p.left == 0 && (err != nil || replies[i].Err != nil) {
						p.client.cleaner.add(p.cleanup())
					} else if p.left == 0 {
						p.step(confirm)
					}
				}
			},
		)
		switch {
		case state == transport.Detached:
			err = fmt.Errorf(
				"%w: no answer to the release within %v",
				ErrOutcomeUnknown,
				c.options.CommandTimeout,
			)
			if last != nil { // what went wrong before says more about what to do
				err = fmt.Errorf("%w; before that: %w", err, last)
			}
			fail(err)
			for _, p := range releases {
				if p.left == 0 {
					p.step(giveUp)
				}
			}
			return
		case err == nil:
			if releases, err = refusedForNow(c, asked, replies, unknown); len(releases) == 0 {
				return
			}
		case c.transport.Permanent(err),
			c.transport.Clustered() && lua.ClassOf(err) == lua.Temporary:
			// One of them may be why, as a key that the ACL forbids; and while a slot moves, what
			// cannot be found together can one by one.
			for _, p := range releases {
				*p.err = p.send(b, p.left, unknown)
			}
			return
		}
		unknown, last = unknown || lua.ClassOf(err) == lua.Unknown, err
		if !b.Sleep(delay.Next(), nil, nil) {
			fail(fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
			for _, p := range releases {
				if p.left == 0 {
					p.abandon()
				}
			}
			return
		}
	}
}

func batchReleases(of []partRelease) []lua.BatchRelease {
	all := make([]lua.BatchRelease, len(of))
	for i, p := range of {
		all[i] = p.lock.kind.plain().part(p.owner, p.left)
	}
	return all
}

// refusedForNow takes the answers, and returns those parts that the server refused for a reason
// that passes by itself, and that reason.
func refusedForNow(
	c *Client, asked []partRelease, replies []lua.BatchReleased, unknown bool,
) (again []partRelease, reason error) {
	for i, r := range replies {
		p := asked[i]
		switch {
		case r.Err == nil:
			*p.err = p.sent(r.Released, p.left, unknown)
		case c.transport.Permanent(r.Err):
			*p.err = r.Err
			if p.left == 0 {
				p.step(giveUp)
			}
		default:
			again, reason = append(again, p), r.Err
		}
	}
	return again, reason
}
