package pubsub_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/pubsub"
)

// A waiter tries, waits for a permit, and tries again. The first permit is the confirmation that
// the server sends messages from now on.
func Example() {
	server := miniredis.NewMiniRedis() // stands for your Redis
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	// For a client with one node, or when channels are not sharded.
	route := func(context.Context, string, bool) (string, rueidis.Client, error) {
		return "", client, nil
	}
	hub := pubsub.New(pubsub.Options{Route: route})
	defer hub.Close()

	subscription := hub.Subscribe(pubsub.Topic{Channel: "door"})
	defer subscription.Close()
	<-subscription.C()
	fmt.Println("listening")

	server.Publish("door", "0")
	<-subscription.C()
	fmt.Println("somebody left")
	// Output:
	// listening
	// somebody left
}
