//go:build redis

package faultproxy

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestNetworkIsInFrontOfEveryNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	n := NewNetwork(t)
	c := cluster.Client(t, n.Use, func(o *rueidis.ClientOption) {
		o.InitAddress = o.InitAddress[:1] // it learns of the others
		o.PipelineMultiplex = -1
	})
	for i := range 100 {
		require.NoError(t, do(t, c, "SET", strconv.Itoa(i), "v").Error())
	}
	require.Len(t, n.Routes(), 3)
	for _, node := range cluster.Nodes {
		require.Equal(t, n.To(node.Addr()).Addr(), n.Routes()[node.Addr()])
		eventually(t, func() bool { return !direct(t, node, n) }, "a client gets past the network")
	}

	// A redirection is followed through the network as well.
	slot := cluster.Slot(t, "key")
	from := cluster.Owner(t, slot)
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	fault := n.To(from.Addr()).Reply("GET key", 1, Moved(slot, to.Addr()))
	back := n.To(to.Addr()).Reply("GET key", 1, "HERE I am")
	require.EqualError(t, c.Do(t.Context(), c.B().Get().Key("key").Build()).Error(), "HERE I am")
	require.Equal(t, []int{1, 1}, []int{fault.Done(), back.Done()})

	var total int
	n.All(func(p *Proxy) { total += p.Reset() })
	require.GreaterOrEqual(t, total, 3)
}

// direct reports whether a client other than the caller is connected to a server past the network.
func direct(t *testing.T, s *redistest.Server, n *Network) bool {
	t.Helper()
	known := throughProxy(n)
	for client := range strings.Lines(s.DoString(t, "CLIENT", "LIST", "TYPE", "normal")) {
		_, address, _ := strings.Cut(client, " addr=")
		address, _, _ = strings.Cut(address, " ")
		if !strings.Contains(client, "cmd=client") && !slices.Contains(known, address) {
			return true
		}
	}
	return false
}

// throughProxy returns the clients' addresses as servers see them.
func throughProxy(n *Network) []string {
	var addresses []string
	n.All(func(p *Proxy) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for l := range p.links {
			addresses = append(addresses, l.target.LocalAddr().String())
		}
	})
	return addresses
}

func TestNetworkIsInFrontOfSentinelAndWhatItNames(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	n := NewNetwork(t)
	c := s.Client(t, n.Use)
	require.NoError(t, do(t, c, "SET", "k", "v").Error())
	routes := n.Routes()
	require.Contains(t, routes, s.Watcher.Addr())
	require.Contains(t, routes, s.Nodes[0].Addr())
	fault := n.To(s.Nodes[0].Addr()).Reply("GET k", 1, "HERE I am")
	require.EqualError(t, do(t, c, "GET", "k").Error(), "HERE I am")
	require.Equal(t, 1, fault.Done())
}

func TestFramesOfAServerThatWantsTLSAreSeen(t *testing.T) {
	s := redistest.Start(t, redistest.WithTLS())
	for how, c := range map[string]func(t *testing.T) (*Proxy, rueidis.Client){
		"by Network.Use": func(t *testing.T) (*Proxy, rueidis.Client) {
			n := NewNetwork(t)
			return n.To(s.Addr()), s.Client(t, n.Use)
		},
		"by Proxy.Use": func(t *testing.T) (*Proxy, rueidis.Client) {
			p := Start(t, s.Addr())
			return p, s.Client(t, p.Use)
		},
		"by Secure": func(t *testing.T) (*Proxy, rueidis.Client) {
			p := Start(t, s.Addr(), Secure(s.TLSConfig()))
			return p, s.Client(t, Route(map[string]string{s.Addr(): p.Addr()}),
				func(o *rueidis.ClientOption) { o.TLSConfig = nil })
		},
	} {
		t.Run(how, func(t *testing.T) {
			p, client := c(t)
			fault := p.CutReply("SET k", 1)
			require.Error(t, do(t, client, "SET", "k", how).Error())
			fault.Wait(t, 1)
			require.Equal(t, how, s.DoString(t, "GET", "k"))
		})
	}
}

// The client's own TLS passes, with faults of bytes; other faults fail the test.
func TestTLSThroughTheProxyAllowsOnlyFaultsOfBytes(t *testing.T) {
	s := redistest.Start(t, redistest.WithTLS())
	said := newComplaints(t)
	p := Start(said, s.Addr())
	c := s.Client(t, Route(map[string]string{s.Addr(): p.Addr()}), func(o *rueidis.ClientOption) {
		o.DisableRetry = true
	})
	require.NoError(t, do(t, c, "SET", "k", "v").Error())
	require.Empty(t, said.said)

	p.HoldReplies()
	done := make(chan error, 1)
	go func() { done <- do(t, c, "SET", "k", "held").Error() }()
	eventually(t, func() bool { return s.DoString(t, "GET", "k") == "held" }, "executed")
	require.Empty(t, done)
	p.Pass()
	require.NoError(t, <-done)
	require.Positive(t, p.Reset())

	p.CutReply("SET", 1)
	eventually(t, func() bool {
		_ = do(t, c, "SET", "k", "v") // the first one may be on the connection that was reset
		return len(said.said) > 0
	}, "no complaint")
	require.Contains(t, heard(t, said.said), "needs frames")
}
