package pubsub_test

import (
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

// A waiter tries, waits for a permit, and tries again. The first permit is the confirmation that
// the server sends messages from now on.
func Example() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()

	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	defer hub.Close()

	subscription := hub.Subscribe("door")
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
	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	defer hub.Close()

	first := hub.Subscribe("door")
	defer first.Close()
	<-first.C()

	// The second subscriber shares the subscription and finds it confirmed.
	second := hub.Subscribe("door")
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
	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	defer hub.Close()

	first, second := hub.Subscribe("door"), hub.Subscribe("door")
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
	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})

	subscription := hub.Subscribe("door")
	<-subscription.C()
	hub.Close()
	fmt.Println(len(server.PubSubChannels("")), "channels")
	// Output: 0 channels
}

func ExampleSubscription_Err() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	defer hub.Close()

	subscription := hub.Subscribe("door")
	defer subscription.Close()
	<-subscription.C()
	fmt.Println(subscription.Err())
	// Output: <nil>
}

// Two rooms share a door, and the message does not say which is free. So one waiter of each tries.
func ExampleHub_SubscribeTopic() {
	server, client := embedded()
	defer server.Close()
	defer client.Close()
	hub := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	defer hub.Close()

	left := hub.SubscribeTopic("door", "left room")
	defer left.Close()
	right := hub.SubscribeTopic("door", "right room")
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
		Route: pubsub.SingleRoute(client),
		Paired: func(channel string) []string {
			return []string{channel + ":present", channel + ":ann"}
		},
		OnDirect: func(_, message string) { messages <- message },
	})
	defer hub.Close()
	fmt.Println("resumed:", hub.Resume("door", "door") != nil)

	subscription := hub.Subscribe("door")
	<-subscription.C()
	subscription.Close()

	// The channel lingers.
	subscription = hub.Resume("door", "door")
	defer subscription.Close()
	fmt.Println("resumed:", subscription != nil)
	server.Publish("door:ann", "come in")
	fmt.Println(<-messages)
	// Output:
	// resumed: false
	// resumed: true
	// come in
}
