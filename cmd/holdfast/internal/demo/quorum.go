package demo

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"holdfast/redlock"
	"holdfast/rlock"
)

// openOverQuorum makes the lock of the part on all of its nodes. The process is connected to them until it disconnects.
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
			Logger:        slog.New(slog.DiscardHandler), // it is no news that a server is dead; a lost lock is an error as well
		})
		if err != nil {
			disconnect()
			return nil, err
		}
		ends = append(ends, func() { _ = client.Close(context.WithoutCancel(ctx)) })
		clients = append(clients, client)
	}
	// A server that is dead stays dead here, so nothing can be forgotten by a restart. The embedded one could not say either
	// for how long it has been up: it knows no INFO server.
	// A machine that runs all these processes at once may take longer to answer than a server of its own.
	options := redlock.Options{FsyncAlways: true, NodeTimeout: 50 * time.Millisecond}
	w.lock = redlock.NewOn(lockKey(w.part.Prefix, w.part.Lock), options, clients...)
	return disconnect, nil
}
