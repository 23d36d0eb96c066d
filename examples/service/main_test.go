package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a net.Listener without a port, for bubbles of testing/synctest.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (m memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m memory) Close() error {
	close(m.closed)
	return nil
}

func (memory) Addr() net.Addr { return &net.TCPAddr{} }

// ship posts an order, and returns the status.
func (m memory) ship(ctx context.Context, order string) (status int, err error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case m.conns <- far:
				return near, nil
			case <-m.closed:
				return nil, net.ErrClosed
			}
		},
	}}
	url := "http://service/orders/" + order + "/ship"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// start starts the service, with a Redis that fails the test if the service keeps a lock. On
// SIGTERM terminate is called, by main.
func start(t *testing.T) (redis *rlocktest.Redis, m memory, terminate func(), ended chan error) {
	t.Helper()
	redis = rlocktest.New(t)
	m = memory{make(chan net.Conn), make(chan struct{})}
	ctx, terminate := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- serve(ctx, redis.ClientOption(), m) }()
	return redis, m, terminate, ended
}

func TestServiceEndsAfterTheRequestsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis, m, terminate, ended := start(t)
		free := redis.Busy("order:42")
		shipped := make(chan int, 1)
		go func() {
			status, err := m.ship(t.Context(), "42")
			if err != nil {
				t.Error(err)
			}
			shipped <- status
		}()
		synctest.Wait()
		terminate()
		time.Sleep(time.Second)
		_, err := m.ship(t.Context(), "43")
		require.ErrorIs(t, err, net.ErrClosed, "it accepts no more requests")
		require.Empty(t, shipped)
		require.Empty(t, ended)
		free()
		require.Equal(t, http.StatusOK, <-shipped)
		require.NoError(t, <-ended)
	})
}

func TestOrderThatIsBusyIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis, m, terminate, ended := start(t)
		redis.Busy("order:42")
		status, err := m.ship(t.Context(), "42")
		require.NoError(t, err)
		require.Equal(t, http.StatusConflict, status)
		terminate()
		require.NoError(t, <-ended)
	})
}
