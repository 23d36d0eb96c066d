package demo

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"holdfast/redlock"
	"holdfast/rlock"
)

// openOverQuorum makes the lock of the part on all of its nodes. disconnect closes the connections.
func (w *worker) openOverQuorum(ctx context.Context) (disconnect func(), err error) {
	var clients []*rlock.Client
	var ends []func()
	disconnect = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	for _, node := range w.part.Nodes {
		redis, err := node.connect(ctx)
		if err != nil {
			disconnect()
			return nil, err
		}
		ends = append(ends, redis.Close)
		client, err := rlock.New(redis, rlock.Options{
			WatchdogLease: w.part.WatchdogLease,
			// it is no news that a server is dead; a lost lock is an error as well
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			disconnect()
			return nil, err
		}
		ends = append(ends, func() { _ = client.Close(context.WithoutCancel(ctx)) })
		clients = append(clients, client)
	}
	// A dead server stays dead here, so a restart can forget nothing. The embedded one could not
	// report its uptime either: it has no INFO server. A machine that runs all these processes may
	// reply later than a server of its own.
	options := redlock.Options{FsyncAlways: true, NodeTimeout: 50 * time.Millisecond}
	w.lock = redlock.NewOn(lockKey(w.part.Prefix, w.part.Lock), options, clients...)
	return disconnect, nil
}
