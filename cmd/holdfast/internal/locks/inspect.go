package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
)

// ErrNotLock reports that a key of that name is something else than a lock.
var ErrNotLock = errors.New("the key is not a lock")

// Inspect returns everything about one lock. A lock that is free and that nobody waits for has
// neither holders nor waiters. If the key is something else, the error wraps [ErrNotLock].
func Inspect(ctx context.Context, redis rueidis.Client, name string) (Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := newReader(ctx, redis)
	if err != nil {
		return Lock{}, err
	}
	defer r.close()
	return r.inspect(ctx, name)
}

func (r *reader) inspect(ctx context.Context, name string) (Lock, error) {
	// A survey of a large hash that is no lock would take long.
	found, err := r.surveyor.Candidates(ctx, name)
	if err != nil {
		return Lock{}, err
	}
	if len(found) == 0 {
		of, err := r.redis.Do(ctx, r.redis.B().Type().Key(name).Build()).ToString()
		if err != nil {
			return Lock{}, rediserr.Classify(err)
		}
		if of != "none" {
			return Lock{}, fmt.Errorf("lock %q: %w (type %s); check the name", name, ErrNotLock, of)
		}
	}
	read := r.read(ctx, []string{name})[0]
	if read.err != nil {
		return Lock{}, read.err
	}
	lock := read.Lock
	lock.Node = r.node(name)
	lock.Subscribers, err = r.subscribers(ctx, lock)
	if rediserr.HasCode(err, "NOPERM", rediserr.Unsupported) {
		lock.Subscribers, err = -1, nil
	}
	return lock, err
}

// node returns the address of the node that has a lock, on a cluster.
func (r *reader) node(name string) string {
	if !r.transport.Clustered() {
		return ""
	}
	return r.transport.Node(name)
}

// subscribers counts those that listen for releases of a lock. They may use sharded channels or
// classic ones, which a cluster counts for each node.
func (r *reader) subscribers(ctx context.Context, lock Lock) (total int, err error) {
	var queue []string
	for _, w := range lock.Waiters {
		queue = append(queue, w.Owner)
	}
	channels := survey.ReleaseChannels(lock.Name, queue)
	count := func(node rueidis.Client, sharded bool) {
		n, failed := survey.Subscribers(ctx, node, sharded, channels)
		total += n
		if err == nil {
			err = failed
		}
	}
	if !r.transport.Clustered() {
		count(r.redis, false)
		return total, err
	}
	nodes := r.redis.Nodes()
	for _, address := range r.transport.Masters() {
		if node := nodes[address]; node != nil {
			count(node, false)
		}
	}
	if node := nodes[lock.Node]; node != nil && r.transport.Channels() != wire.Classic {
		count(node, true)
	}
	return total, err
}
