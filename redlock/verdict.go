package redlock

import (
	"errors"
	"slices"
	"time"

	"holdfast/rlock"
)

// verdict is what a failed round says about when to ask again.
type verdict struct {
	err      *QuorumError
	hopeless bool
	took     time.Duration

	// held tells that one owner has a quorum, so that nothing is to be had until it unlocks, or its lease ends.
	held bool
	// refusing are the nodes on which somebody else has the lock. Only they can announce something new: on the others it may
	// be our own retreat that is announced.
	refusing []int
	// free is how many nodes would have granted it.
	free int
	// closed are the nodes whose clients were closed. A client that closes after its node has answered is news.
	closed []int
	// freeAfter is when leases should be over on so many nodes that there is a quorum; 0 if that cannot be told.
	freeAfter time.Duration
}

// verdict is what the round that has just failed says. It is called with mu held, before anything is given up.
func (t *tenure) verdict(took time.Duration) *verdict {
	v := &verdict{err: t.failure(nil), hopeless: t.hopeless(), took: took, free: t.in(granted)}
	v.held = t.rival() >= t.lock.quorum
	var leases []time.Duration
	for i := range t.parts {
		if errors.Is(t.parts[i].err, rlock.ErrClosed) {
			v.closed = append(v.closed, i)
		}
		h := t.parts[i].vote.Holder
		if t.parts[i].state == granted || h == nil {
			continue
		}
		v.refusing = append(v.refusing, i)
		if h.TTL != rlock.NoExpiry {
			leases = append(leases, h.TTL)
		}
	}
	slices.Sort(leases)
	if needed := t.lock.quorum - v.free; needed > 0 && needed <= len(leases) {
		v.freeAfter = max(leases[needed-1], time.Millisecond)
	}
	return v
}

// rival is on how many nodes somebody else has the lock, whoever of the others has it on most. It is called with mu held.
func (t *tenure) rival() (most int) {
	nodes := make(map[string]int)
	for i := range t.parts {
		if h := t.parts[i].vote.Holder; h != nil && t.parts[i].state != granted {
			nodes[h.Owner]++
			most = max(most, nodes[h.Owner])
		}
	}
	return most
}
