package redlock

import (
	"time"

	"holdfast/rlock"
)

// longestPark is how long a waiter sleeps at most before it looks by itself. It bounds the harm of a message that never
// comes.
const longestPark = 5 * time.Second

// splits is how many rounds may fail without anybody having a quorum before that is taken for more than bad luck: somebody
// holds the lock under a name on each node, as Redisson does.
const splits = 5

// queue stands in line until this attempt is at its head, and then asks whenever there is a reason to.
func (a *attempt) queue() (*rlock.Hold, error) {
	s := lines.join(a.lock)
	look, ok := s.advance(a.patience)
	if !ok {
		a.last = s.line.last()
		s.leave(true)
		return nil, a.ended()
	}
	var delay backoff
	for {
		if look {
			if hold := a.round(); hold != nil {
				s.line.taken(a.lease)
				s.leave(false) // the next in line waits for us
				return hold, nil
			}
			s.line.note(a.last)
			if a.last.hopeless {
				s.leave(true)
				return nil, a.ended()
			}
		} else {
			// Somebody of this process has just got it.
			a.last = &verdict{err: &QuorumError{Lock: a.lock.name, Want: a.lock.quorum}, held: true, refusing: all(a.lock),
				freeAfter: s.line.freeAfter()}
		}
		if a.last.held {
			delay = backoff{}
		}
		if !a.pause(s.line, &delay) {
			s.leave(true)
			return nil, a.ended()
		}
		look = true
	}
}

// all are the indexes of the nodes.
func all(l *Lock) []int {
	indexes := make([]int, len(l.nodes))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// pause waits until it is worth to ask again, and returns false if patience ended before.
//
// When somebody has the lock that is when enough nodes announce that they are free, or when leases should be over. When
// nobody has it, the vote was split or nodes are missing, and it is a random time, during which nothing is heard: what the
// others announce is their own retreat, and whoever followed it would meet them again.
func (a *attempt) pause(q *line, delay *backoff) bool {
	v := a.last
	after := delay.next(v.took)
	if !v.held && delay.failures < splits {
		return a.patience.sleep(after)
	}
	if v.held {
		after = longestPark
		if v.freeAfter > 0 {
			after = min(after, v.freeAfter)
		}
	}
	return q.listen(a.patience, a.lock, v, after)
}
