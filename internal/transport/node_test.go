package transport

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
	"holdfast/pubsub"
)

// inCluster runs a test with calls of a cluster, and a node that replied just now.
func inCluster(t *testing.T, test func(t *testing.T, c *Calls, node *Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		defer group.Wait()
		c := NewCalls(group, timeout, func(context.Context) error { return nil })
		c.overlapped = true
		test(t, c, newNode(true))
	})
}

// newNode returns a node, and has it reply.
func newNode(replies bool) *Node {
	n := &Node{client: new(countingClient)}
	n.begin(time.Now())
	if replies {
		n.record(time.Now(), Executed)
	}
	return n
}

// beginAt begins a call for a lock at a node.
func beginAt(t *testing.T, c *Calls, at *Node) *Call {
	c.nodeOf = func(string) *Node { return at }
	return c.Begin(unlimited(t), time.Now(), "order")
}

// countingClient counts its commands. It is the client of a node, or of a cluster.
type countingClient struct {
	rueidis.Client
	commands int
}

func (c *countingClient) Do(context.Context, rueidis.Completed) rueidis.RedisResult {
	c.commands++
	return rueidis.RedisResult{}
}

func TestCallerSendsToANodeOfAClusterOnlyWhileThatNodeReplies(t *testing.T) {
	inCluster(t, func(t *testing.T, c *Calls, node *Node) {
		another := newNode(false)
		begins := func(n *Node) bool {
			k := beginAt(t, c, n)
			if k != nil {
				_, _ = k.End(nil)
			}
			return k != nil
		}
		require.True(t, begins(node))
		require.False(t, begins(another), "the other node has not replied")
		require.False(t, begins(nil), "the topology is not known")
		require.False(t, begins(&Node{replies: replies{began: time.Now()}}), "rueidis has no client")
		time.Sleep(recentReply + time.Millisecond)
		require.False(t, begins(node))
		c.recordReply(nil, time.Now(), Executed) // of another node
		require.False(t, begins(node))
		node.record(time.Now(), Executed)
		k := beginAt(t, c, node)
		_, _ = k.End(errLost)
		require.False(t, begins(node), "its connection was lost")
	})
}

func TestCommandOfACallGoesToItsNodeAndOthersGoThroughTheCluster(t *testing.T) {
	_, _, client := startSlots(t, nil)
	command := func() rueidis.Completed { return client.B().Get().Key("order").Build() }
	inCluster(t, func(t *testing.T, c *Calls, node *Node) {
		through := new(countingClient)
		cs := &cluster{}
		silent := newNode(false)
		cs.ranges.Store([]slotRange{{first: 0, last: 65535, node: silent}})
		d := direct{through, cs}
		k := beginAt(t, c, node)
		d.Do(k, command())
		_, _ = k.End(nil)
		require.Equal(t, 1, node.client.(*countingClient).commands)
		require.Zero(t, through.commands)
		require.Nil(t, beginAt(t, c, silent))
		d.Do(t.Context(), command())
		require.Equal(t, 1, through.commands)
		k = beginAt(t, c, silent)
		require.NotNil(t, k, "a reply of its slot did not count")
		_, _ = k.End(nil)
	})
}

func TestCallThatMissesItsNodeIsSentByAWorkerAndReadsTheTopologyOnce(t *testing.T) {
	refusal := func(text string) error {
		return &rediserr.Error{Class: rediserr.ClassTemporary, Code: text, Message: text}
	}
	for name, of := range map[string]struct {
		err   error
		state State
	}{
		"moved":        {refusal("MOVED"), NotSent},
		"asked":        {refusal("ASK"), NotSent},
		"half moved":   {refusal("TRYAGAIN"), NotSent},
		"down":         {refusal("CLUSTERDOWN"), NotSent},
		"loading":      {refusal("LOADING"), NotSent},
		"closed":       {rediserr.Classify(rueidis.ErrClosing), NotSent},
		"not allowed":  {refusal("NOPERM"), NotExecuted},
		"no error":     {nil, Executed},
		"lost at once": {rediserr.Classify(io.EOF), NotSent},
	} {
		inCluster(t, func(t *testing.T, c *Calls, node *Node) {
			read := 0
			begun, end := make(chan struct{}), make(chan struct{})
			c.OnCluster(nil, nil, func() bool { return true }, func(context.Context) {
				read++
				close(begun)
				<-end
			})
			var calls []*Call
			for range 3 {
				calls = append(calls, beginAt(t, c, node))
			}
			for _, k := range calls {
				_ = k.Err() // rueidis has a connection
				state, err := k.End(of.err)
				require.Equal(t, of.state, state, name)
				require.ErrorIs(t, err, of.err, name)
			}
			if of.state == NotSent {
				<-begun
				require.Equal(t, 1, read, name)
			}
			close(end)
		})
	}
}

func TestTopologyIsReadAgainForANodeThatRueidisDidNotKnowUnlessItIsNew(t *testing.T) {
	for _, outdated := range []bool{true, false} {
		inCluster(t, func(t *testing.T, c *Calls, node *Node) {
			read := 0
			c.OnCluster(nil, nil, func() bool { return outdated }, func(context.Context) { read++ })
			node.client = nil
			for range 2 {
				require.Nil(t, beginAt(t, c, node))
				synctest.Wait()
			}
			require.Equal(t, outdated, read == 2)
		})
	}
}

func TestTopologyIsReadAgainOnceItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reply any = list{entry(0, 16383, "fake", 6379)}
		_, asked, client := startSlots(t, &reply)
		tr := &Transport{cluster: &cluster{client: client}}
		require.True(t, tr.Outdated())
		require.Nil(t, tr.Direct("order"), "the topology is not known yet")
		tr.ReadTopology(t.Context())
		require.EqualValues(t, 1, asked.Load())
		require.Nil(t, tr.Direct("order"), "the kind of channels is not known yet")
		tr.hub.Store(new(pubsub.Hub))
		require.NotNil(t, tr.Direct("order").client)
		time.Sleep(leastAge)
		require.False(t, tr.Outdated())
		time.Sleep(time.Nanosecond)
		require.True(t, tr.Outdated())
		require.Nil(t, (&Transport{}).Direct("order"), "there is no cluster")
		require.False(t, (&Transport{}).Outdated())
	})
}

func TestEndOfTheClientEndsTheReadOfTheTopology(t *testing.T) {
	inCluster(t, func(t *testing.T, c *Calls, node *Node) {
		closing, began := make(chan struct{}), time.Now()
		c.OnCluster(closing, nil, func() bool { return true }, func(ctx context.Context) { <-ctx.Done() })
		node.client = nil
		require.Nil(t, beginAt(t, c, node))
		synctest.Wait()
		close(closing)
		c.group.Wait()
		require.Zero(t, time.Since(began))
	})
}
