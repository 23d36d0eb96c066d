package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

var errUnassigned = errors.New("no node of the cluster serves the slot")

// minimumAge keeps callers that notice the same change from sending one request each.
const minimumAge = 100 * time.Millisecond

// cluster knows which node of a cluster serves which slot, because rueidis routes commands but does
// not say to which node, and renewals and subscriptions are sent per node. The topology may be out
// of date, as in every client. A caller that notices asks again. It is safe for concurrent use.
type cluster struct {
	client   rueidis.Client
	ranges   atomic.Value // []slotRange, by the last reply
	fetching sync.Mutex   // held during a fetch, so that concurrent callers share one reply
	fetched  time.Time    // guarded by fetching
	// read is a copy of fetched for callers that must not wait; nil before the first reply.
	read atomic.Pointer[time.Time]
}

type slotRange struct {
	first, last uint16
	master      string // host:port
	node        *Node
}

// master returns the address of the master that serves slot, in the form of [rueidis.Client.Nodes].
// It asks the cluster if the master of slot is not known, or if wrong reports that the last reply
// was wrong, unless it has just asked. It blocks only for that command, which ctx cancels. The
// error wraps errUnassigned if no node serves the slot.
func (cs *cluster) master(ctx context.Context, slot uint16, wrong bool) (string, error) {
	asked := time.Now()
	if address := cs.remembered(slot); address != "" && !wrong {
		return address, nil
	}
	cs.fetching.Lock()
	defer cs.fetching.Unlock()
	if !cs.fetched.After(asked.Add(-minimumAge)) {
		entries, err := cs.client.Do(ctx, cs.client.B().ClusterSlots().Build().ToPipe()).ToArray()
		if err != nil {
			return "", fmt.Errorf("read the cluster's slots: %w", err)
		}
		now := time.Now()
		cs.fetched = now
		cs.read.Store(&now)
		var ranges []slotRange
		nodes, clients := map[string]*Node{}, cs.client.Nodes()
		for _, entry := range entries {
			r, ok := cs.parse(entry)
			if !ok {
				continue
			}
			r.node = nodes[r.master]
			if r.node == nil {
				r.node = &Node{client: clients[r.master]}
				r.node.begin(now)
				nodes[r.master] = r.node
			}
			ranges = append(ranges, r)
		}
		cs.ranges.Store(ranges)
	}
	if address := cs.remembered(slot); address != "" {
		return address, nil
	}
	return "", fmt.Errorf("slot %d: %w", slot, errUnassigned)
}

// remembered returns the master of slot by the last reply, or "".
func (cs *cluster) remembered(slot uint16) string { return cs.at(slot).master }

// node returns the master of slot by the last reply, or nil.
func (cs *cluster) node(slot uint16) *Node { return cs.at(slot).node }

// at returns the range of slot by the last reply; zero if there is none.
func (cs *cluster) at(slot uint16) slotRange {
	ranges, _ := cs.ranges.Load().([]slotRange)
	for _, r := range ranges {
		if r.first <= slot && slot <= r.last {
			return r
		}
	}
	return slotRange{}
}

// older reports whether the last reply is older than age, or there is none.
func (cs *cluster) older(age time.Duration) bool {
	read := cs.read.Load()
	return read == nil || time.Since(*read) > age
}

// parse reads an entry of CLUSTER SLOTS: first and last slot, master as {host, port, …}, replicas.
func (cs *cluster) parse(entry rueidis.RedisMessage) (r slotRange, ok bool) {
	fields, _ := entry.ToArray() // nil if the entry is not an array
	if len(fields) < 3 {
		return r, false
	}
	first, err1 := fields[0].ToInt64()
	last, err2 := fields[1].ToInt64()
	node, _ := fields[2].ToArray()
	if errors.Join(err1, err2) != nil || len(node) < 2 || first < 0 || last >= 16384 {
		return r, false
	}
	number, err := node[1].ToInt64()
	if err != nil {
		return r, false
	}
	port := strconv.FormatInt(number, 10)
	host, err := node[0].ToString()
	if err != nil || host == "" || host == "?" {
		// The node that was asked does not know its own address, but the client does.
		host = ""
		for address := range cs.client.Nodes() {
			if known, p, err := net.SplitHostPort(address); err == nil && p == port {
				host = known
			}
		}
	}
	r = slotRange{first: uint16(first), last: uint16(last), master: net.JoinHostPort(host, port)}
	return r, host != ""
}

// Masters returns the sorted addresses of the masters of a cluster, in the form of
// [rueidis.Client.Nodes], by the last topology. See [Transport.Ready]. Without a cluster, Masters
// returns nil.
func (t *Transport) Masters() []string {
	if t.cluster == nil {
		return nil
	}
	ranges, _ := t.cluster.ranges.Load().([]slotRange)
	masters := make([]string, len(ranges))
	for i, r := range ranges {
		masters[i] = r.master
	}
	slices.Sort(masters)
	return slices.Compact(masters)
}
