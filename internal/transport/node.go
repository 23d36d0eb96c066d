package transport

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// replies records when a server last replied. Call begin first.
type replies struct {
	began time.Time
	at    atomic.Int64 // about when the latest command with a reply was sent, in ns since began
}

// longAgo is before any reply.
const longAgo = math.MinInt64 / 2

// begin sets the time from which replies count. There is no reply yet.
func (r *replies) begin(now time.Time) {
	r.began = now
	r.at.Store(longAgo)
}

// record records whether a command sent at the given time got a reply. record does not write after
// each reply, because a write slows down all other processors that send.
func (r *replies) record(sent time.Time, outcome State) {
	at := int64(longAgo)
	if outcome == Executed || outcome == NotExecuted {
		at = int64(sent.Sub(r.began))
	}
	if at < 0 || at > r.at.Load()+int64(recentReply/10) {
		r.at.Store(at)
	}
}

// age returns how long ago the latest command with a reply was sent.
func (r *replies) age(now time.Time) time.Duration {
	return now.Sub(r.began) - time.Duration(r.at.Load())
}

// Node is a master of a cluster, as of the last topology. Callers send their commands to it without
// a worker while it replies.
type Node struct {
	replies
	client rueidis.Client // reaches only this node; nil until rueidis has found the node
}

// Direct returns the node to which a caller sends a command for a lock itself, for [Calls.Begin].
// Direct returns nil without a cluster, and until the topology is known.
func (t *Transport) Direct(lock string) *Node {
	if t.cluster == nil || t.hub.Load() == nil {
		return nil
	}
	return t.cluster.node(wire.Slot(lock))
}

// direct is the client of a cluster. It sends the command of a [Call] to the node of the call, and
// every other command by the topology that rueidis knows.
type direct struct {
	rueidis.Client
	cluster *cluster
}

func (d direct) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if call, ok := ctx.(*Call); ok && call.node != nil {
		return call.node.client.Do(ctx, command)
	}
	slot, sent := command.Slot(), time.Now() // rueidis recycles the command
	result := d.Client.Do(ctx, command)
	// rueidis does not say which node replied. If it was another one, a caller that sends to this node
	// is redirected, or gets no reply, and the topology is read again.
	if node := d.cluster.node(slot); node != nil && result.NonRedisError() == nil {
		node.record(sent, Executed)
	}
	return result
}

// redirected reports whether a node of a cluster has rejected a command that the client of the
// cluster would send again, perhaps to another node. No node has executed the command.
func redirected(err error) bool {
	return rediserr.HasCode(err, "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING")
}

// leastAge is how old a topology is at least when it is read again because a node of it was not
// reached. Connections that rueidis has not opened yet look the same.
const leastAge = time.Second

// Outdated reports whether the topology is old enough to be read again.
func (t *Transport) Outdated() bool {
	return t.cluster != nil && t.cluster.older(leastAge)
}

// ReadTopology asks the cluster for its topology. It blocks for the reply, which ctx cancels.
func (t *Transport) ReadTopology(ctx context.Context) {
	_, _ = t.cluster.master(ctx, 0, true) // the next caller that is not served reads it again
}
