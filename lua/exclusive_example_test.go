package lua_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// Two goroutines of one process: the one that releases the lock names its successor, and the reply
// is the successor's acquisition.
func ExampleExclusive() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", true)

	fence, _, _, err := lock.Acquire(ctx, client, "client:1", 30*time.Second, "")
	fmt.Println("client:1 has it, with the token", fence, err)

	next := lua.HandOver{
		Successor:      lock.Registration("client:2", 30*time.Second),
		SuccessorFirst: true,
	}
	released, err := lock.Release(ctx, client, "client:1", 0, next)
	fmt.Println("client:2 has it:", released.To == lua.Successor, "with the token", released.Fence,
		err)
	// Output:
	// client:1 has it, with the token 1 <nil>
	// client:2 has it: true with the token 2 <nil>
}

// Two processes: a waiter has a registration, and the message to its client is its acquisition.
func ExampleParseGrant() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", false)

	messages := make(chan string, 1)
	channels := append([]string{lock.Channel()}, lua.PairedChannels(lock.Channel(), "waiter")...)
	listener, stop := client.Dedicate()
	defer stop()
	listener.SetPubSubHooks(
		rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { messages <- m.Message }})
	subscribe := listener.B().Subscribe().Channel(channels...).Build()
	if err := listener.Do(ctx, subscribe).Error(); err != nil {
		panic(err)
	}

	if _, _, _, err := lock.Acquire(ctx, client, "holder:1", 30*time.Second, ""); err != nil {
		panic(err)
	}
	_, ticket, holder, err := lock.Acquire(ctx, client, "waiter:1", 30*time.Second,
		lock.Registration("waiter:1", 30*time.Second))
	fmt.Println("waiter:1 waits for", holder.Owner, err)

	released, err := lock.Release(ctx, client, "holder:1", 0, lua.HandOver{Others: true})
	fmt.Println("somebody else has it:", released.To == lua.Other, err)
	grant, _ := lua.ParseGrant(<-messages)
	fmt.Println(grant.Owner, "has", grant.Lock, "with the ticket of its registration:",
		grant.Ticket == ticket)
	// Output:
	// waiter:1 waits for holder:1 <nil>
	// somebody else has it: true <nil>
	// waiter:1 has order:42 with the ticket of its registration: true
}
