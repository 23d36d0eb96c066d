package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
)

// releaseBatch releases holds of several plain locks of one client and slot, with one script. It
// returns one error for each.
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
	// Another call of the owner has locked these sessions, perhaps for long. No session stays
	// locked while this one is blocked on another.
	for _, i := range busy {
		errs[i] = holds[i].acquisition.Release(holds[i])
	}
	for i, h := range holds {
		wrap(&errs[i], h.Name())
	}
	return errs
}

// partRelease is the release of one lock of a batch, to a number of levels.
type partRelease struct {
	*acquisition
	left int
	err  *error
}

// sendBatch sends the releases. The caller has their sessions locked. Those that are refused
// temporarily are sent again, one by one if necessary.
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
			err = fmt.Errorf("%w: no answer to the release within %v", ErrOutcomeUnknown,
				c.options.CommandTimeout)
			if last != nil { // the error before is more helpful
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
			// One lock may be the reason, such as a key that the ACL forbids. While a slot moves,
			// keys may be reached one by one but not together.
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
		all[i] = lua.BatchRelease{Lock: p.lock.name, Owner: p.owner, Count: p.left,
			Announcement: p.client.unlocked(p.lock.waiting.topic.Channel)}
	}
	return all
}

// refusedForNow handles the replies. It returns those parts that were refused temporarily, and the
// reason.
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
