package pubsub_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/pubsub"
)

// embedded starts a server inside this process, so that the examples run anywhere.
func embedded() (server *miniredis.Miniredis, client rueidis.Client) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true,
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	return server, client
}

// toOneNode returns the Route for a client with one node, or for any client when channels are not
// sharded: all channels share one connection.
func toOneNode(client rueidis.Client) pubsub.Route {
	return func(context.Context, string, bool) (string, rueidis.Client, error) {
		return "", client, nil
	}
}

// A waiter tries, waits for a permit, and tries again. The first permit is the confirmation that
// the server sends messages from now on.
func Example() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()

	hub := pubsub.New(pubsub.Options{Route: toOneNode(client)})
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
