package faultproxy

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestNetworkCanBeThereBeforeItsClients(t *testing.T) {
	s := redistest.Start(t)
	n := NewNetwork(t, s.Addr())
	require.Len(t, n.Routes(), 1)
	fault := n.To(s.Addr()).Reply("GET k", 1, "HERE I am")
	c := s.Client(t, n.Use)
	require.EqualError(t, do(t, c, "GET", "k").Error(), "HERE I am")
	require.Equal(t, 1, fault.Done())
}

func TestProxiesOfANetworkAreStartedOnce(t *testing.T) {
	n := NewNetwork(t)
	var all sync.WaitGroup
	found := make([]*Proxy, 10)
	for i := range found {
		all.Go(func() { found[i] = n.To("127.0.0.1:1") })
	}
	all.Wait()
	for _, p := range found {
		require.Same(t, found[0], p)
	}
}

func TestNetworkThatIsOverCannotBeDialed(t *testing.T) {
	s := redistest.Start(t)
	option := s.ClientOption()
	t.Run("with a network", func(t *testing.T) { NewNetwork(t).Use(&option) })
	_, err := rueidis.NewClient(option)
	require.ErrorIs(t, err, errOver)
}

func TestProxyIsUsedForItsServerOnly(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	p := Start(t, a.Addr())
	p.BlackHole()
	require.NoError(t, do(t, b.Client(t, p.Use), "PING").Error())
	p.Pass()
	require.NoError(t, do(t, a.Client(t, p.Use), "PING").Error())
}

func TestRouteNeedsNoProxyInTheProcess(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	n := NewNetwork(t, a.Addr())
	c := a.Client(t, Route(n.Routes()))
	fault := n.To(a.Addr()).Reply("GET k", 1, "HERE I am")
	require.EqualError(t, do(t, c, "GET", "k").Error(), "HERE I am")
	require.Equal(t, 1, fault.Done())

	option := b.ClientOption()
	Route(n.Routes())(&option)
	_, err := rueidis.NewClient(option)
	require.ErrorContains(t, err, "no route to "+b.Addr())
}
