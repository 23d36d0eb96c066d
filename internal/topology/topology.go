// Package topology knows which node of a cluster serves which slot. rueidis routes commands by
// itself but does not tell where to; leases are renewed and channels subscribed per node, and need
// to know.
//
// What it answers may be out of date, as it is in every client of a cluster. Who acts on it must
// notice a wrong answer and ask for a fresh one.
package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// ErrUnassigned is the error for a slot that no node serves.
var ErrUnassigned = errors.New("no node of the cluster serves the slot")

// slots is the number of slots of a cluster.
const slots = 16384

// minimumAge keeps many callers that notice the same change from asking once each.
const minimumAge = 100 * time.Millisecond

// Cluster is the slot map of one cluster, fetched when it is first needed. It is safe for
// concurrent use.
type Cluster struct {
	client rueidis.Client

	fetching sync.Mutex // held while the map is fetched, so that concurrent callers share one answer

	mu      sync.RWMutex
	ranges  []slotRange // guarded by mu
	fetched time.Time   // guarded by mu
}

type slotRange struct {
	first, last uint16
	master      string // host:port
}

// New returns the slot map of the cluster that client is connected to. It sends nothing yet.
func New(client rueidis.Client) *Cluster {
	return &Cluster{client: client}
}

// Master returns the address of the master that serves slot, in the form that
// [rueidis.Client.Nodes] uses. It asks the cluster the first time, and again when the caller says
// that the last answer was wrong; it blocks for that command only.
func (c *Cluster) Master(ctx context.Context, slot uint16, wrong bool) (string, error) {
	asked := time.Now()
	if address, ok := c.find(slot); ok && !wrong {
		return address, nil
	}
	if err := c.fetch(ctx, asked); err != nil {
		return "", fmt.Errorf("read the cluster's slots: %w", err)
	}
	address, ok := c.find(slot)
	if !ok {
		return "", fmt.Errorf("slot %d: %w", slot, ErrUnassigned)
	}
	return address, nil
}

// Known is Master from memory: it never blocks, and ok is false when no answer so far named a
// master of slot.
func (c *Cluster) Known(slot uint16) (address string, ok bool) { return c.find(slot) }

func (c *Cluster) find(slot uint16) (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, r := range c.ranges {
		if r.first <= slot && slot <= r.last {
			return r.master, true
		}
	}
	return "", false
}

// fetch reads the map, unless one has been read since the caller asked or just before.
func (c *Cluster) fetch(ctx context.Context, asked time.Time) error {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	c.mu.RLock()
	fresh := c.fetched.After(asked.Add(-minimumAge))
	c.mu.RUnlock()
	if fresh {
		return nil
	}
	entries, err := c.client.Do(ctx, c.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return err
	}
	ranges := make([]slotRange, 0, len(entries))
	for _, entry := range entries {
		if r, ok := c.parse(entry); ok {
			ranges = append(ranges, r)
		}
	}
	c.mu.Lock()
	c.ranges, c.fetched = ranges, time.Now()
	c.mu.Unlock()
	return nil
}

// parse reads one entry of CLUSTER SLOTS: first slot, last slot, the master as {host, port, id, …},
// its replicas.
func (c *Cluster) parse(entry rueidis.RedisMessage) (slotRange, bool) {
	fields, err := entry.ToArray()
	if err != nil || len(fields) < 3 {
		return slotRange{}, false
	}
	first, err1 := fields[0].ToInt64()
	last, err2 := fields[1].ToInt64()
	node, err3 := fields[2].ToArray()
	if errors.Join(err1, err2, err3) != nil || len(node) < 2 || first < 0 || last >= slots {
		return slotRange{}, false
	}
	port, err := node[1].ToInt64()
	if err != nil {
		return slotRange{}, false
	}
	// A node that does not know its own address gives null or "": it is the one that was asked.
	host, err := node[0].ToString()
	if err != nil || host == "" || host == "?" {
		host = c.hostOf(port)
	}
	return slotRange{
		uint16(first),
		uint16(last),
		net.JoinHostPort(host, strconv.FormatInt(port, 10)),
	}, host != ""
}

// hostOf finds the host of a node of which only the port is known.
func (c *Cluster) hostOf(port int64) string {
	for address := range c.client.Nodes() {
		if host, p, err := net.SplitHostPort(address); err == nil &&
			p == strconv.FormatInt(port, 10) {
			return host
		}
	}
	return ""
}
