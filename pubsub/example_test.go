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

func ExampleHub_Subscribe() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: toOneNode(client)})
	defer hub.Close()

	first := hub.Subscribe(pubsub.Topic{Channel: "door"})
	defer first.Close()
	<-first.C()

	// The second subscriber shares the subscription and finds it confirmed.
	second := hub.Subscribe(pubsub.Topic{Channel: "door"})
	defer second.Close()
	<-second.C()

	server.Publish("door", "1")
	<-first.C()
	<-second.C()
	fmt.Println("both woke,", server.PubSubNumSub("door")["door"], "subscription")
	// Output: both woke, 1 subscription
}

func ExampleSubscription_Close() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: toOneNode(client)})
	defer hub.Close()

	first := hub.Subscribe(pubsub.Topic{Channel: "door"})
	second := hub.Subscribe(pubsub.Topic{Channel: "door"})
	defer second.Close()
	<-second.C()

	// The first leaves with its permit unused, so the next one gets it.
	first.Close()
	<-second.C()
	fmt.Println("handed on")
	// Output: handed on
}

func ExampleHub_Close() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: toOneNode(client)})

	subscription := hub.Subscribe(pubsub.Topic{Channel: "door"})
	<-subscription.C()
	hub.Close()
	fmt.Println(len(server.PubSubChannels("")), "channels")
	// Output: 0 channels
}

// Two rooms share a door, and the message does not say which is free. So one waiter of each tries.
func ExampleTopic() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: toOneNode(client)})
	defer hub.Close()

	left := hub.Subscribe(pubsub.Topic{Channel: "door", Name: "left room"})
	defer left.Close()
	right := hub.Subscribe(pubsub.Topic{Channel: "door", Name: "right room"})
	defer right.Close()
	<-left.C()
	<-right.C()

	server.Publish("door", "0")
	<-left.C()
	<-right.C()
	fmt.Println("both look")
	// Output: both look
}

// A channel that lingers is there at once, with its paired channels. One that does not linger is
// not waited for.
func ExampleHub_Resume() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	messages := make(chan string, 1)
	hub := pubsub.New(pubsub.Options{
		Route: toOneNode(client),
		Paired: func(channel string) []string {
			return []string{channel + ":present", channel + ":ann"}
		},
		OnDirect: func(_, message string) { messages <- message },
	})
	defer hub.Close()
	fmt.Println("resumed:", hub.Resume(pubsub.Topic{Channel: "door"}) != nil)

	subscription := hub.Subscribe(pubsub.Topic{Channel: "door"})
	<-subscription.C()
	subscription.Close()

	// The channel lingers.
	subscription = hub.Resume(pubsub.Topic{Channel: "door"})
	defer subscription.Close()
	fmt.Println("resumed:", subscription != nil)
	server.Publish("door:ann", "come in")
	fmt.Println(<-messages)
	// Output:
	// resumed: false
	// resumed: true
	// come in
}
