package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/redlock"
	"holdfast/rlock"
)

// masters stands for what a program does when it starts: it makes a client for each of n masters.
// Here they are inside the program, so that the examples run anywhere. They do not speak all of
// RESP3; a real Redis needs neither of the last two options.
func masters(n int) (clients []*rlock.Client, disconnect func()) {
	var undo []func()
	for i := range n {
		server, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		client, disconnect := exampleClient(i, rueidis.ClientOption{
			InitAddress:       []string{server.Addr()},
			ForceSingleClient: true, // a program must be able to start while some masters are down
			AlwaysRESP2:       true,
			DisableCache:      true,
		})
		clients = append(clients, client)
		undo = append(undo, func() { disconnect(); server.Close() })
	}
	return clients, all(undo)
}

func exampleClient(i int, o rueidis.ClientOption) (client *rlock.Client, disconnect func()) {
	redis, err := rueidis.NewClient(o)
	if err != nil {
		panic(err)
	}
	client, err = rlock.New(redis, rlock.Options{
		Server: fmt.Sprintf("master-%d", i+1),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
	}
}

func all(undo []func()) func() {
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// durable states that the masters of the examples write each command to disk before they reply,
// which no master inside a program does. It also gives them time to reply on a machine that is busy
// with tests.
var durable = redlock.Options{FsyncAlways: true, NodeTimeout: 2 * time.Second}
