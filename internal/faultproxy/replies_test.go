package faultproxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestCutReplyIsExactOnAPipelinedConnection(t *testing.T) {
	versions(t, func(t *testing.T, s *redistest.Server, p *Proxy, c *caller, _ string) {
		// The execution of this script can be seen.
		sha := s.DoString(t, "SCRIPT", "LOAD", "return redis.call('INCRBY', KEYS[1], ARGV[1])")
		fault := p.CutReply(sha, 1)
		p.HoldRequests() // so that all of them are due when the first reply comes
		c.say(t, "SET before 1", "INCR before", "EVALSHA "+sha+" 1 cut 7", "INCR after",
			"GET before")
		p.Pass()
		c.hear(t, "+OK\r\n", ":2\r\n")
		c.broken(t)
		require.Equal(t, 1, fault.Done())
		require.Equal(t, "7", s.DoString(t, "GET", "cut"))

		again := dialTo(t, p) // the fault was for one request
		again.say(t, "EVALSHA "+sha+" 1 cut 7")
		again.hear(t, ":14\r\n")
		require.Equal(t, 1, fault.Done())
	})
}

func TestRequestWithAReplyOfTheProxyIsNotExecutedAndItsErrorIsInOrder(t *testing.T) {
	versions(t, func(t *testing.T, s *redistest.Server, p *Proxy, c *caller, _ string) {
		fault := p.Reply("INCR b", 2, Loading)
		refused := "-" + Loading + "\r\n"
		c.say(t, "INCR a", "INCR b", "INCR a", "INCR b", "INCR b", "INCR a")
		c.hear(t, ":1\r\n", refused, ":2\r\n", refused, ":1\r\n", ":3\r\n")
		require.Equal(t, 2, fault.Done())
		require.Equal(t, "1", s.DoString(t, "GET", "b"))
	})
}

func TestReplaceChangesTheReplyOfAnExecutedRequest(t *testing.T) {
	versions(t, func(t *testing.T, _ *redistest.Server, p *Proxy, c *caller, push string) {
		fault := p.Replace("INCR b", 2, TryAgain)
		refused := "-" + TryAgain + "\r\n"
		c.say(t, "INCR a", "INCR b", "INCR a", "INCR b", "INCR b", "INCR a")
		c.hear(t, ":1\r\n", refused, ":2\r\n", refused, ":3\r\n", ":3\r\n")
		require.Equal(t, 2, fault.Done())

		p.Replace("SUBSCRIBE a", 1, Busy) // which has two confirmations
		c.say(t, "SUBSCRIBE a b", "SUBSCRIBE c")
		c.hear(t, "-"+Busy+"\r\n", list(push, "subscribe", "c", ":3\r\n"))
	})
}
