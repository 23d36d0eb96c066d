package contestants

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
)

// quorum is the raw scripts on all nodes at once. It goes on when a quorum has replied. It has a
// goroutine for each node and lock, and leaks it on a node that hangs.
func quorum() contest.Contestant {
	return contest.Contestant{Name: "parallel quorum",
		Setting: "raw scripts on all nodes at once, on when most have answered; leaks a " +
			"goroutine per lock on a node that hangs", Part: contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			c := &quorumClient{name: newClientName()}
			for _, address := range s.Addresses {
				node, err := openRaw(address, s)
				if err != nil {
					c.Close()
					return nil, fmt.Errorf("node %s: %w", address, err)
				}
				c.nodes = append(c.nodes, node)
			}
			return c, nil
		}}
}

type quorumClient struct {
	name  string
	nodes []rueidis.Client
}

func (c *quorumClient) Locker(name string) contest.Locker {
	return &rawQuorum{client: c, name: name, channel: "channel:" + name}
}

func (c *quorumClient) Close() {
	for _, node := range c.nodes {
		node.Close()
	}
}

type rawQuorum struct {
	client        *quorumClient
	name, channel string
	unlock        chan context.Context // of Unlock, for each node
	released      chan bool
}

func (l *rawQuorum) Lock(ctx context.Context) error {
	n := len(l.client.nodes)
	owner := l.client.name + ":" + strconv.FormatInt(lockerNumber.Add(1), 10)
	granted, released := make(chan bool, n), make(chan bool, n)
	unlock := make(chan context.Context, n)
	l.unlock, l.released = unlock, released
	for _, node := range l.client.nodes {
		go func() {
			reply, err := run1(ctx, node, acquireScript, l.name, owner, rawLease)
			granted <- err == nil && reply == acquired
			held, err := run2(<-unlock, node, releaseScript, l.name, l.channel, owner, "")
			released <- err == nil && held == 1
		}()
	}
	if most(granted, n) {
		return nil
	}
	_ = l.Unlock(ctx) // a minority was acquired, so it is no error to have no quorum
	return contest.ErrGaveUp
}

func (l *rawQuorum) Unlock(ctx context.Context) error {
	n := len(l.client.nodes)
	for range n {
		l.unlock <- ctx
	}
	if !most(l.released, n) {
		return errNotHeld
	}
	return nil
}

// most returns true at the quorum-th yes of n answers, and false once there can be none.
func most(answers <-chan bool, n int) bool {
	yes, no := 0, 0
	for yes <= n/2 && no < n-n/2 {
		if <-answers {
			yes++
		} else {
			no++
		}
	}
	return yes > n/2
}
