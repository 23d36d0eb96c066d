package chaos

import (
	"github.com/redis/rueidis"
)

// inTurn is a client whose pool of connections one goroutine uses at a time. rueidis holds the
// mutex of the pool while it closes a connection, which takes a round trip. In a bubble, time
// stands still as long as a goroutine waits for a mutex: so it waits for a channel instead.
type inTurn struct {
	rueidis.Client
	turn chan struct{} // has room for whoever uses the pool
}

func newInTurn(c rueidis.Client) rueidis.Client { return inTurn{c, make(chan struct{}, 1)} }

func (c inTurn) use(f func()) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	f()
}

// Dedicate implements [rueidis.Client].
func (c inTurn) Dedicate() (client rueidis.DedicatedClient, release func()) {
	c.use(func() { client, release = c.Client.Dedicate() })
	return dedicatedInTurn{client, c}, func() { c.use(release) }
}

// Dedicated implements [rueidis.Client].
func (c inTurn) Dedicated(f func(rueidis.DedicatedClient) error) error {
	client, release := c.Dedicate()
	defer release()
	return f(client)
}

// Close implements [rueidis.Client].
func (c inTurn) Close() { c.use(c.Client.Close) }

type dedicatedInTurn struct {
	rueidis.DedicatedClient
	of inTurn
}

// Close implements [rueidis.DedicatedClient].
func (c dedicatedInTurn) Close() { c.of.use(c.DedicatedClient.Close) }
