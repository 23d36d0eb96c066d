// Package topology knows which node of a cluster serves which slot. rueidis routes commands by
// itself but does not say to which node. Renewals and subscriptions are sent per node and need to
// know.
//
// Its answers may be out of date, as in every client of a cluster. A caller must notice a wrong
// answer and ask for a fresh one.
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

// minimumAge keeps callers that notice the same change from asking once each.
const minimumAge = 100 * time.Millisecond

// Cluster is the slot map of one cluster, fetched when it is first needed. It is safe for
// concurrent use.
type Cluster struct {
	client rueidis.Client

	fetching sync.Mutex // held during a fetch, so that concurrent callers share one answer

	mu      sync.RWMutex
	ranges  []slotRange // guarded by mu
	fetched time.Time   // guarded by mu
}

type slotRange struct {
	first, last uint16
	master      string // host:port
}

// New returns the slot map of the cluster that client is connected to. It sends no command.
func New(client rueidis.Client) *Cluster {
	return &Cluster{client: client}
}

// Master returns the address of the master that serves slot, in the form that
// [rueidis.Client.Nodes] uses. It asks the cluster when no answer for slot is known, and again when
// wrong reports that the last answer was wrong. It blocks only for that command, which ctx cancels.
// The error wraps [ErrUnassigned] if no node serves the slot.
func (c *Cluster) Master(ctx context.Context, slot uint16, wrong bool) (string, error) {
	asked := time.Now()
	if address, ok := c.Known(slot); ok && !wrong {
		return address, nil
	}
	if err := c.fetch(ctx, asked); err != nil {
		return "", fmt.Errorf("read the cluster's slots: %w", err)
	}
	address, ok := c.Known(slot)
	if !ok {
		return "", fmt.Errorf("slot %d: %w", slot, ErrUnassigned)
	}
	return address, nil
}

// Known is Master from memory: it asks nothing, and ok is false when the last answer named no
// master of slot.
func (c *Cluster) Known(slot uint16) (address string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, r := range c.ranges {
		if r.first <= slot && slot <= r.last {
			return r.master, true
		}
	}
	return "", false
}

// fetch reads the map, unless it was read after the caller asked or just before.
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

// parse reads one entry of CLUSTER SLOTS: first slot, last slot, the master as {host, port, id, …}
// and its replicas.
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
	// The node that was asked gives null or "" for itself if it does not know its own address.
	host, err := node[0].ToString()
	if err != nil || host == "" || host == "?" {
		host = c.hostOf(port)
	}
	master := net.JoinHostPort(host, strconv.FormatInt(port, 10))
	return slotRange{uint16(first), uint16(last), master}, host != ""
}

// hostOf returns the host of the node with the given port, or "".
func (c *Cluster) hostOf(port int64) string {
	wanted := strconv.FormatInt(port, 10)
	for address := range c.client.Nodes() {
		if host, p, err := net.SplitHostPort(address); err == nil && p == wanted {
			return host
		}
	}
	return ""
}
