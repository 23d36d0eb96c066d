package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// node is a server that is examined: the only one, or a master of a cluster.
type node struct {
	Options

	redis   rueidis.Client // this server; nil if the client of the cluster does not know it
	whole   rueidis.Client // the same, or the cluster
	address string         // on a cluster, else ""
	slots   [][2]int64     // first and last, on a cluster

	gone bool              // it does not reply, and is not examined further
	said map[string]string // INFO, once asked
	err  error             // why it is not known, once asked
}

// replyTime is how long a master of a cluster may take to reply.
const replyTime = 5 * time.Second

// masters returns the nodes to examine.
func masters(ctx context.Context, redis rueidis.Client, o Options) ([]*node, error) {
	if redis.Mode() != rueidis.ClientModeCluster {
		return []*node{{Options: o, redis: redis, whole: redis}}, nil
	}
	entries, err := topology(ctx, redis)
	if err != nil {
		return nil, err
	}
	var nodes []*node
	for _, entry := range entries {
		first, last, address, err := slots(entry)
		if err != nil {
			return nil, fmt.Errorf("read the cluster's slots: %w", err)
		}
		at := slices.IndexFunc(nodes, func(n *node) bool { return n.address == address })
		if at < 0 {
			at = len(nodes)
			nodes = append(nodes, &node{Options: o, redis: redis.Nodes()[address], whole: redis,
				address: address})
		}
		nodes[at].slots = append(nodes[at].slots, [2]int64{first, last})
	}
	slices.SortFunc(nodes, func(a, b *node) int { return cmp.Compare(a.address, b.address) })
	if len(nodes) == 0 {
		return nil, errors.New("no node of the cluster serves a slot; run redis-cli --cluster check")
	}
	return nodes, nil
}

// topology returns CLUSTER SLOTS of the first node that replies.
func topology(ctx context.Context, redis rueidis.Client) ([]rueidis.RedisMessage, error) {
	var failed []error
	for address, node := range redis.Nodes() {
		entries, err := node.Do(ctx, node.B().ClusterSlots().Build()).ToArray()
		if err == nil {
			return entries, nil
		}
		failed = append(failed, fmt.Errorf("read the cluster's slots from %s: %w", address, err))
	}
	return nil, errors.Join(failed...)
}

// slots reads an entry of CLUSTER SLOTS: first and last slot, master as {host, port, …}, replicas.
func slots(entry rueidis.RedisMessage) (first, last int64, address string, err error) {
	fields, err := entry.ToArray()
	if err != nil || len(fields) < 3 {
		return 0, 0, "", cmp.Or(err, errors.New("the reply is too short"))
	}
	first, err1 := fields[0].ToInt64()
	last, err2 := fields[1].ToInt64()
	master, err3 := fields[2].ToArray()
	if err := errors.Join(err1, err2, err3); err != nil || len(master) < 2 {
		return 0, 0, "", cmp.Or(err, errors.New("the reply is too short"))
	}
	host, err1 := master[0].ToString()
	port, err2 := master[1].ToInt64()
	return first, last, net.JoinHostPort(host, strconv.FormatInt(port, 10)), errors.Join(err1, err2)
}

func (n *node) isGone() bool { return n.gone }

// reachable looks at whether a master of a cluster replies. Elsewhere it finds nothing.
func reachable(ctx context.Context, n *node) []Finding {
	if n.address == "" {
		return nil
	}
	const advice = "bring this node back, or fail over to one of its replicas"
	if n.redis == nil {
		n.gone = true
		return one(failure(advice, "this node has failed, so the cluster rejects locks in its slots"))
	}
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	if err := n.do(ctx, "PING").Error(); err != nil {
		n.gone = true
		return one(failure(advice, "this node does not reply (%s), so locks in its slots fail",
			reason(err)))
	}
	return one(ok("replies"))
}

// do sends one command to the node.
func (n *node) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return n.redis.Do(ctx, n.redis.B().Arbitrary(words...).Build())
}

// text returns the reply of a command that is a text: with RESP3 its format comes first.
func (n *node) text(ctx context.Context, words ...string) (string, error) {
	text, err := n.do(ctx, words...).ToString()
	return strings.TrimPrefix(text, "txt:"), err
}

// info returns the fields of INFO.
func (n *node) info(ctx context.Context) (map[string]string, error) {
	if n.said != nil || n.err != nil {
		return n.said, n.err
	}
	text, err := n.text(ctx, "INFO")
	n.err = err
	if err != nil {
		return nil, err
	}
	n.said = parseFields(text)
	return n.said, nil
}

// parseFields reads lines of a name, a colon and a value. Values of the same name, such as module,
// are joined.
func parseFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if fields[name] != "" {
				value = fields[name] + " " + value
			}
			fields[name] = value
		}
	}
	return fields
}

// field returns a field of INFO that has to be there.
func (n *node) field(ctx context.Context, name string) (string, error) {
	said, err := n.info(ctx)
	if err != nil {
		return "", err
	}
	value, known := said[name]
	if !known {
		return "", fmt.Errorf("INFO has no field %s", name)
	}
	return value, nil
}

// number returns a field of INFO that is a number.
func (n *node) number(ctx context.Context, name string) (int64, error) {
	value, err := n.field(ctx, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

// config returns a setting.
func (n *node) config(ctx context.Context, name string) (string, error) {
	settings, err := n.do(ctx, "CONFIG", "GET", name).AsStrMap()
	if err != nil {
		return "", err
	}
	value, known := settings[name]
	if !known {
		return "", fmt.Errorf("CONFIG GET has no setting %s", name)
	}
	return value, nil
}

// mostDraws is enough to find a name in any slot.
const mostDraws = 1 << 18

// lockName returns a new name for a lock that the node serves, which nobody else uses. It returns
// "" if the node serves none, because the hash tag in the prefix is for another.
func (n *node) lockName() string {
	for range mostDraws {
		name := n.Prefix + "holdfast-doctor:" + uuid.NewString()
		slot := int64(wire.Slot(name))
		serves := func(r [2]int64) bool { return r[0] <= slot && slot <= r[1] }
		if n.address == "" || slices.ContainsFunc(n.slots, serves) {
			return name
		}
	}
	return ""
}
