package faultproxy

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// increment is a script whose execution can be seen.
const increment = "return redis.call('INCRBY', KEYS[1], ARGV[1])"

func TestCutReplyIsExactOnAPipelinedConnection(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("RESP"+version, func(t *testing.T) {
			s, p := served(t)
			sha := s.DoString(t, "SCRIPT", "LOAD", increment)
			fault := p.CutReply(sha, 1)
			c := dialTo(t, p.Addr())
			c.say(t, "HELLO "+version)
			_, err := c.replies.next()
			require.NoError(t, err)
			p.HoldRequests() // so that all of them are due when the first reply comes
			c.say(t, "SET before 1", "INCR before", "EVALSHA "+sha+" 1 cut 7", "INCR after",
				"GET before")
			p.Pass()
			c.frame(t, "+OK\r\n", ":2\r\n")
			c.broken(t)
			require.Equal(t, 1, fault.Done())
			require.Equal(t, "7", s.DoString(t, "GET", "cut"))

			again := dialTo(t, p.Addr()) // the fault was for one request
			again.say(t, "EVALSHA "+sha+" 1 cut 7")
			again.frame(t, ":14\r\n")
			require.Equal(t, 1, fault.Done())
		})
	}
}

// Without a library in between: every reply before the cut arrives, however many and large they
// are, and not a byte of the cut one.
func TestCutReplyLeavesEarlierRepliesWhole(t *testing.T) {
	t.Parallel()
	s, p := served(t)
	large := strings.Repeat("x", 1<<20)
	s.Do(t, "SET", "large", large)
	for range 10 {
		c := dialTo(t, p.Addr())
		fault := p.CutReply("needle", 1)
		c.say(t, "PING", "GET large", "ECHO a", "ECHO needle", "ECHO b", "GET large")
		c.frame(t, "+PONG\r\n", bulk(large), bulk("a"))
		c.broken(t)
		require.Equal(t, 1, fault.Done())
	}
}

func TestCutReplyCutsAsManyConnectionsAsAsked(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	fault := p.CutReply("needle", 2)
	for range 2 {
		c := dialTo(t, p.Addr())
		c.say(t, "hay", "a needle", "a needle", "hay")
		c.hear(t, "hay")
		c.broken(t)
	}
	require.Equal(t, 2, fault.Done())
	fault.Wait(t, 2)
	c := dialTo(t, p.Addr())
	c.say(t, "a needle")
	c.hear(t, "a needle")
	require.Equal(t, "hay", heard(t, got))
	require.Equal(t, "a needle", heard(t, got)) // the server has executed it
}

func TestCutReplyFindsAPatternInTwoPieces(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	fault := p.CutReply("one needle", 1)
	whole := request("one needle")
	c.raw(t, whole[:len(whole)-5])
	c.silent(t)
	c.raw(t, whole[len(whole)-5:])
	require.Equal(t, "one needle", heard(t, got))
	c.broken(t)
	require.Equal(t, 1, fault.Done())
}

func TestCutReplyAppliesToARequestInFlight(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.HoldReplies()
	c.say(t, "needle")
	heard(t, got)
	fault := p.CutReply("needle", 1)
	p.Pass()
	fault.Wait(t, 1)
	c.broken(t)
}

func TestEndedFaultDoesNotHappen(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	fault := p.Reply("x", 10, Loading)
	other := p.Replace("x", 1, Busy)
	c.say(t, "x")
	c.frame(t, "-"+Loading+"\r\n")
	fault.End()
	c.say(t, "x", "x")
	c.frame(t, "-"+Busy+"\r\n", bulk("x"))
	require.Equal(t, 1, fault.Done())
	require.Equal(t, 1, other.Done())
}

func TestWaitReturnsOnceTheFaultHasHappenedOftenEnough(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	fault := p.Replace("x", 2, Loading)
	c.say(t, "x")
	fault.Wait(t, 1)
	c.frame(t, "-"+Loading+"\r\n")
	p.HoldReplies()
	c.say(t, "x")
	passed := time.AfterFunc(shortly, p.Pass)
	fault.Wait(t, 2)
	require.False(t, passed.Stop(), "it waited for only one")
}

func TestRequestWithAReplyOfTheProxyIsNotExecutedAndItsErrorIsInOrder(t *testing.T) {
	versions(t, func(t *testing.T, version func(*rueidis.ClientOption)) {
		s, p := served(t)
		c := one(t, s, p, version)
		for _, reply := range []string{
			Loading, ReadOnly, Busy, ClusterDown, OutOfMemory, TryAgain, MasterDown, Misconf,
			NoPerm("u", "incr"), Moved(3999, "127.0.0.1:6381"), Ask(3999, "127.0.0.1:6381"),
		} {
			s.Do(t, "FLUSHALL")
			fault := p.Reply("INCR b", 2, reply)
			got := values(batch(t, c, "INCR a", "INCR b", "INCR a", "INCR b", "INCR b", "INCR a"))
			require.Equal(t, []string{"1", reply, "2", reply, "1", "3"}, got)
			require.Equal(t, 2, fault.Done())
			require.Equal(t, "1", s.DoString(t, "GET", "b"))
		}
	})
}

func TestReplaceChangesTheReplyOfAnExecutedRequest(t *testing.T) {
	versions(t, func(t *testing.T, version func(*rueidis.ClientOption)) {
		s, p := served(t)
		c := one(t, s, p, version)
		fault := p.Replace("INCR b", 2, TryAgain)
		got := values(batch(t, c, "INCR a", "INCR b", "INCR a", "INCR b", "INCR b", "INCR a"))
		require.Equal(t, []string{"1", TryAgain, "2", TryAgain, "3", "3"}, got)
		require.Equal(t, 2, fault.Done())
	})
}

// The order must be right also when the proxy's reply is ready long before the one that is due
// first.
func TestReplyOfTheProxyKeepsTheOrder(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.Reply("two", 1, Loading)
	p.HoldReplies()
	c.say(t, "one", "two", "three")
	require.Equal(t, "one", heard(t, got))
	require.Equal(t, "three", heard(t, got))
	c.silent(t)
	p.Pass()
	c.frame(t, bulk("one"), "-"+Loading+"\r\n", bulk("three"))

	p.DelayRequests(shortly) // the proxy's reply comes no sooner than the server's would
	p.Reply("four", 1, Loading)
	start := time.Now()
	c.say(t, "four")
	c.frame(t, "-"+Loading+"\r\n")
	require.GreaterOrEqual(t, time.Since(start), shortly)
}

func TestReplyOfTheProxyIsHeldLikeOthers(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	fault := p.Reply("one", 1, "two\r\nlines")
	p.HoldReplies()
	c.say(t, "one")
	fault.Wait(t, 1)
	c.silent(t)
	p.Pass()
	c.frame(t, "-two  lines\r\n")
}

func TestRefusedSubscriptionIsAnErrorForTheSubscriber(t *testing.T) {
	versions(t, func(t *testing.T, version func(*rueidis.ClientOption)) {
		for how, fault := range map[string]func(*Proxy) *Fault{
			"instead": func(p *Proxy) *Fault {
				return p.Reply("SUBSCRIBE", 1, NoPerm("default", "subscribe"))
			},
			"replaced": func(p *Proxy) *Fault {
				return p.Replace("SUBSCRIBE", 1, NoPerm("default", "subscribe"))
			},
		} {
			t.Run(how, func(t *testing.T) {
				s, p := served(t)
				c := one(t, s, p, version)
				f := fault(p)
				err := c.Receive(t.Context(), c.B().Subscribe().Channel("a", "b").Build(),
					func(rueidis.PubSubMessage) {})
				require.EqualError(t, err, NoPerm("default", "subscribe"))
				require.Equal(t, 1, f.Done())
				require.NoError(t, do(t, c, "PING").Error()) // no confirmation is in the way
			})
		}
	})
}
