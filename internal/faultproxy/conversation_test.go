//go:build redis

package faultproxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// talk returns a connection to a real server, and inOrder, which sends a request behind all that
// the test sent: when its reply comes, every request before has had its own reply, and nothing else
// was taken for one.
func talk(t *testing.T, version string) (s *redistest.Server, p *Proxy, c *caller, inOrder func()) {
	t.Helper()
	s, p = served(t)
	c = dialTo(t, p.Addr())
	c.say(t, "HELLO "+version)
	_, err := c.replies.next()
	require.NoError(t, err)
	return s, p, c, func() {
		t.Helper()
		p.Reply("in order", 1, Loading)
		c.say(t, "ECHO in order")
		c.frame(t, "-"+Loading+"\r\n")
	}
}

// waitUntilDue waits until a reply is due on the only connection.
func waitUntilDue(t *testing.T, p *Proxy) {
	t.Helper()
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for l := range p.links {
			return l.talk.next() != nil
		}
		return false
	}, "no reply is due")
}

func array(kind string, values ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	b.WriteByte(byte('0' + len(values)))
	b.WriteString("\r\n")
	for _, value := range values {
		if strings.HasPrefix(value, ":") || value == "_" || value == "$-1" {
			b.WriteString(value + "\r\n")
		} else {
			b.WriteString(bulk(value))
		}
	}
	return b.String()
}

func TestEachChannelIsConfirmedByItself(t *testing.T) {
	for version, kind := range map[string]string{"2": "*", "3": ">"} {
		t.Run("RESP"+version, func(t *testing.T) {
			null := map[string]string{"2": "$-1", "3": "_"}[version]
			s, p, c, inOrder := talk(t, version)
			c.say(t, "UNSUBSCRIBE", "UNSUBSCRIBE a")
			c.frame(t, array(kind, "unsubscribe", null, ":0"),
				array(kind, "unsubscribe", "a", ":0"))
			inOrder()
			c.say(t, "SUBSCRIBE a b a", "PSUBSCRIBE p*", "SSUBSCRIBE s")
			c.frame(t, array(kind, "subscribe", "a", ":1"), array(kind, "subscribe", "b", ":2"),
				array(kind, "subscribe", "a", ":2"),
				array(kind, "psubscribe", "p*", ":3"), array(kind, "ssubscribe", "s", ":1"))
			inOrder()
			require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "a", "hello"))
			require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "p1", "hello"))
			require.EqualValues(t, 1, s.DoInt(t, "SPUBLISH", "s", "hello"))
			c.frame(t, array(kind, "message", "a", "hello"),
				array(kind, "pmessage", "p*", "p1", "hello"), array(kind, "smessage", "s", "hello"))
			inOrder()
			if version == "2" {
				c.say(t, "PING")
				c.frame(t, array(kind, "pong", ""))
			}
			// one of two channels, and both confirmations
			fault := p.Replace("UNSUBSCRIBE b", 1, Busy)
			c.say(t, "UNSUBSCRIBE b c", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "PING")
			c.frame(t, "-"+Busy+"\r\n", array(kind, "unsubscribe", "a", ":1"),
				array(kind, "punsubscribe", "p*", ":0"),
				array(kind, "sunsubscribe", "s", ":0"), "+PONG\r\n")
			require.Equal(t, 1, fault.Done())
			inOrder()
			c.say(t, "PSUBSCRIBE p* q*")
			c.frame(t, array(kind, "psubscribe", "p*", ":1"), array(kind, "psubscribe", "q*", ":2"))
			p.Replace("PUNSUBSCRIBE", 1, Busy) // of all channels, of which there are two
			c.say(t, "PUNSUBSCRIBE", "PING")
			c.frame(t, "-"+Busy+"\r\n", "+PONG\r\n")
		})
	}
}

func TestArraysThatLookLikeMessagesAreReplies(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("RESP"+version, func(t *testing.T) {
			s, p, c, inOrder := talk(t, version)
			s.Do(t, "RPUSH", "list", "message", "a", "b")
			if version == "3" {
				c.say(t, "SUBSCRIBE a")
				c.frame(t, array(">", "subscribe", "a", ":1"))
			}
			p.HoldMessages()
			c.say(t, "LRANGE list 0 -1")
			c.frame(t, array("*", "message", "a", "b"))
			inOrder()
		})
	}
}

func TestMonitorReportsAreNoReplies(t *testing.T) {
	s, p, c, inOrder := talk(t, "3")
	c.say(t, "MONITOR")
	c.frame(t, "+OK\r\n")
	inOrder()
	p.HoldMessages()
	p.HoldReplies()
	s.Do(t, "SET", "k", "v")
	c.say(t, "PING")
	waitUntilDue(t, p)
	p.replies.gate.open()
	c.frame(t, "+PONG\r\n")
	c.silent(t)
	inOrder()
	p.Pass()
	for _, command := range []string{`"SET" "k" "v"`, `"PING"`} {
		f, err := c.replies.next()
		require.NoError(t, err)
		require.Contains(t, string(f.raw), command)
	}
	c.say(t, "RESET")
	c.frame(t, "+RESET\r\n")
	inOrder()
}

func TestEveryTypeOfReplyIsOneReply(t *testing.T) {
	_, p, c, inOrder := talk(t, "3")
	for _, kind := range []string{"string", "integer", "double", "null", "array", "set", "map",
		"attrib", "verbatim", "true", "false"} {
		c.say(t, "DEBUG PROTOCOL "+kind)
	}
	for range 11 {
		_, err := c.replies.next()
		require.NoError(t, err)
	}
	inOrder()
	c.say(t, "MULTI", "SET k v", "GET k", "EXEC", "GET none")
	c.frame(t, "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+OK\r\n$1\r\nv\r\n", "_\r\n")
	inOrder()
	require.Empty(t, p.faults)
}

// A slot that moves ends a subscription without a request.
func TestEndOfAShardedSubscriptionIsNoReply(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	slot := cluster.Slot(t, "s")
	owner := cluster.Owner(t, slot)
	other := cluster.Nodes[0]
	if other == owner {
		other = cluster.Nodes[1]
	}
	p := Start(t, owner.Addr())
	c := dialTo(t, p.Addr())
	c.say(t, "HELLO 3")
	_, err := c.replies.next()
	require.NoError(t, err)
	c.say(t, "SSUBSCRIBE s")
	c.frame(t, array(">", "ssubscribe", "s", ":1"))
	p.HoldMessages()
	p.HoldReplies()
	cluster.MoveSlot(t, slot, owner, other)
	c.say(t, "PING")
	waitUntilDue(t, p) // and now it ends while a reply is due
	p.replies.gate.open()
	c.frame(t, "+PONG\r\n")
	c.silent(t)
	p.Pass()
	c.frame(t, array(">", "sunsubscribe", "s", ":0"))
	c.say(t, "SSUBSCRIBE s", "PING") // refused with MOVED
	f, err := c.replies.next()
	require.NoError(t, err)
	require.Contains(t, string(f.raw), "-MOVED")
	c.frame(t, "+PONG\r\n")
}
