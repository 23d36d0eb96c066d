package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// A lock that a replica must have before anyone works under it, on a server that has none.
func ExampleReplicationError() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true, // these two for miniredis only
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client, err := rlock.New(redis,
		rlock.Options{SyncReplicas: 1, SyncTimeout: 200 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)

	lock := client.NewLock("order:42")
	_, err = lock.Lock(ctx, rlock.Watchdog)
	var missing *rlock.ReplicationError
	if errors.As(err, &missing) {
		fmt.Printf("%d of %d replicas\n", missing.Got, missing.Want)
	}
	locked, err := lock.IsLocked(ctx)
	fmt.Println("undone:", !locked, err)
	// Output:
	// 0 of 1 replicas
	// undone: true <nil>
}
