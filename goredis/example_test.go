package goredis_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/goredis"
	"holdfast/rlock"
)

// A service with a go-redis client opens a second client for its locks, from the same options.
func ExampleNewClient() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	options := &redis.Options{Addr: server.Addr(), Protocol: 2} // miniredis needs protocol 2
	cache := redis.NewClient(options)
	defer cache.Close()

	forLocks, err := goredis.NewClient(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer forLocks.Close()
	client, err := rlock.New(forLocks, rlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer client.Close(ctx)

	err = rlock.Do(ctx, client.NewLock("orders"), rlock.NoWait, rlock.Watchdog,
		func(ctx context.Context) error {
			fmt.Println(cache.Type(ctx, "orders").Val())
			return nil
		})
	fmt.Println(err)

	// Output:
	// hash
	// <nil>
}

// A field that could lead the locks to another server is an error, which says what to do instead.
func ExampleClientOption() {
	options := &redis.Options{
		Addr: "10.0.0.7:6379",
		OnConnect: func(ctx context.Context, cn *redis.Conn) error {
			return cn.Select(ctx, 3).Err()
		},
	}
	_, err := goredis.ClientOption(options)
	fmt.Println(err != nil)

	forLocks := *options
	forLocks.OnConnect = nil
	option, err := goredis.ClientOption(&forLocks)
	option.SelectDB = 3 // as OnConnect does
	fmt.Println(option.InitAddress, option.SelectDB, err)

	// Output:
	// true
	// [10.0.0.7:6379] 3 <nil>
}
