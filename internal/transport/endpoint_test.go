package transport

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
)

// hooked is a rueidis client that runs a function before it gives out a dedicated connection.
type hooked struct {
	rueidis.Client
	before func()
}

func (h *hooked) Dedicate() (rueidis.DedicatedClient, func()) {
	h.before()
	return h.Client.Dedicate()
}

// withEndpoint runs a test with an endpoint whose server has accepted a write. before runs ahead of
// each dedicated connection.
func withEndpoint(t *testing.T, before func(), test func(t *testing.T, e *endpoint)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakeredis.New()
		defer server.Close()
		client, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer client.Close()
		var wrote atomic.Bool
		wrote.Store(true)
		e := &endpoint{Client: &hooked{client, before}, wrote: &wrote, moved: func() {},
			ended: make(chan struct{})}
		defer e.close()
		test(t, e)
	})
}

func TestEndpointIsFollowedAfterAHookHasEndedTheGoroutineThatDials(t *testing.T) {
	ends := true
	withEndpoint(t, func() {
		if ends {
			runtime.Goexit()
		}
	}, func(t *testing.T, e *endpoint) {
		began := time.Now()
		require.False(t, e.Follow(t.Context()))
		require.Zero(t, time.Since(began), "the command waits for a dial that is over")
		ends = false
		_, release := e.Dedicate()
		release()
		time.Sleep(openTimeout)
		require.True(t, e.Follow(t.Context()))
	})
}

func TestSubscriptionLeavesTheNextConnectionToCommands(t *testing.T) {
	var dialing chan struct{} // of the bubble
	var asked atomic.Int32
	withEndpoint(t, func() {
		if asked.Add(1) == 1 {
			<-dialing
		}
	}, func(t *testing.T, e *endpoint) {
		dialing = make(chan struct{})
		followed, subscribed := make(chan bool, 1), make(chan func(), 1)
		go func() { followed <- e.Follow(t.Context()) }()
		synctest.Wait()
		go func() {
			_, release := e.Dedicate()
			subscribed <- release
		}()
		synctest.Wait()
		require.Equal(t, int32(1), asked.Load(), "the subscription does not wait")
		close(dialing)
		require.True(t, <-followed)
		(<-subscribed)()
	})
}
