package redlock

import (
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
	// freeAfter is when leases should be over on so many nodes that there is a quorum; 0 if that cannot be told.
	freeAfter time.Duration
}

// verdict is what the round that has just failed says. It is called with mu held, before anything is given up.
func (t *tenure) verdict(took time.Duration) *verdict {
	v := &verdict{err: t.failure(nil), hopeless: t.hopeless(), took: took, free: t.in(granted)}
	owners := make(map[string]int)
	var leases []time.Duration
	for i := range t.parts {
		h := t.parts[i].vote.Holder
		if t.parts[i].state == granted || h == nil {
			continue
		}
		v.refusing = append(v.refusing, i)
		owners[h.Owner]++
		v.held = v.held || owners[h.Owner] >= t.lock.quorum
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
