package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// releaseTogether gives back holds of several plain locks of one client and slot, with one script. Each has an error of its
// own.
func releaseTogether(holds []*Hold) []error {
	errs := make([]error, len(holds))
	leaving := make([]departure, 0, len(holds))
	c := holds[0].tenure.(*holding).client
	p := c.resolve(time.Now())
	defer p.stop()
	var turns []*seat
	var busy []int
	for i, h := range holds {
		g := h.tenure.(*holding)
		switch {
		case !h.leave():
			errs[i] = ofEnded(ErrReleased)
		case !g.seat.tryClaim():
			busy = append(busy, i)
		default:
			turns = append(turns, g.seat)
			if g.told {
				c.lines.leave(g.owner)
				defer c.lines.left(g.owner)
			}
			var left int
			if left, errs[i] = g.depart([]*Hold{h}, time.Now()); errs[i] == nil {
				leaving = append(leaving, departure{holding: g, left: left, err: &errs[i]})
			}
		}
	}
	if len(leaving) > 0 {
		sendTogether(c, p, leaving)
	}
	for _, of := range leaving {
		if of.left == 0 {
			of.undoAdrift()
		}
	}
	for _, s := range turns {
		s.pass()
	}
	// Another call of the same owner has the turn at these, perhaps for long. No turn is kept while it is waited for.
	for _, i := range busy {
		errs[i] = holds[i].tenure.Release(holds[i])
	}
	for i, h := range holds {
		wrap(&errs[i], h.Name())
	}
	return errs
}

// departure is a holding that is to be left with so many levels.
type departure struct {
	*holding
	left int
	err  *error
}

// sendTogether tells Redis what is left of each. It has the turns of all their seats. Those that are refused for the time
// being are sent again, by themselves.
func sendTogether(c *Client, p *patience, leaving []departure) {
	var (
		delay backoff
		doubt bool // an earlier command may have been executed
		last  error
	)
	fail := func(err error, cleanUp bool) {
		for _, of := range leaving {
			*of.err = err
			if cleanUp {
				of.cleanUp()
			}
		}
	}
	for {
		asked := leaving
		replies, gone, err := await(c, p, func() ([]lua.BatchReleased, error) {
			return lua.ReleaseBatch(context.Background(), c.redis, leavings(asked))
		}, func(replies []lua.BatchReleased, err error) {
			for i, of := range asked {
				if err != nil || replies[i].Err != nil {
					of.cleanUp()
				}
			}
		})
		switch {
		case gone:
			if last != nil { // what went wrong before says more about what to do
				fail(fmt.Errorf("%w: no answer to the release within %v; before that: %w", ErrOutcomeUnknown, c.options.CommandTimeout, last), false)
				return
			}
			fail(fmt.Errorf("%w: no answer to the release within %v", ErrOutcomeUnknown, c.options.CommandTimeout), false)
			return
		case err == nil:
			if leaving, err = refusedForNow(c, asked, replies, doubt); len(leaving) == 0 {
				return
			}
		case c.hopeless(err), c.wire.cluster != nil && lua.ClassOf(err) == lua.Temporary:
			// One of them may be why, as a key that the ACL forbids; and while a slot moves, what cannot be found together can one
			// by one.
			for _, of := range leaving {
				*of.err = of.send(p, of.left, doubt)
			}
			return
		}
		doubt, last = doubt || lua.ClassOf(err) == lua.Unknown, err
		if !p.sleep(delay.next(), nil) {
			fail(fmt.Errorf("%w: %w", ErrOutcomeUnknown, err), true)
			return
		}
	}
}

func leavings(of []departure) []lua.BatchRelease {
	all := make([]lua.BatchRelease, len(of))
	for i, d := range of {
		all[i] = lua.BatchRelease{Lock: d.lock.name, Owner: d.owner, Count: d.left, Announcement: d.lock.kind.(reentrant).announcement()}
	}
	return all
}

// refusedForNow takes the answers, and returns those departures that the server refused for a reason that passes by itself,
// and that reason.
func refusedForNow(c *Client, asked []departure, replies []lua.BatchReleased, doubt bool) (again []departure, reason error) {
	for i, reply := range replies {
		if reply.Err != nil && !c.hopeless(reply.Err) {
			again, reason = append(again, asked[i]), reply.Err
			continue
		}
		*asked[i].err = asked[i].released(reply, doubt)
	}
	return again, reason
}

// cleanUp has what may be left in Redis released in the background.
func (d departure) cleanUp() {
	if d.left == 0 {
		d.client.janitor.add(d.leftover())
	}
}

// released is what one of the answers means.
func (d departure) released(reply lua.BatchReleased, doubt bool) error {
	switch {
	case reply.Err != nil:
		return reply.Err
	case reply.Held || d.wasReleased(d.left, doubt):
		d.client.refused(d.lock, reply.Refusal)
		return nil
	default:
		return d.notHeld()
	}
}
