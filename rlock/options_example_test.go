package rlock_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// A service shares a Redis with others, as with a NameMapper of Redisson.
func ExamplePrefix() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	defer redis.Close()

	client, err := rlock.New(redis, rlock.Options{NameMapper: rlock.Prefix("shop:")})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.NewLock("order:42").Name())
	// Output: shop:order:42
}
