package rlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// slowConn is a connection whose replies take a round trip longer. They do not wait for each other.
type slowConn struct {
	net.Conn
	arrived net.Conn // where the replies come out
}

func (c slowConn) Read(b []byte) (int, error)        { return c.arrived.Read(b) }
func (c slowConn) SetReadDeadline(t time.Time) error { return c.arrived.SetReadDeadline(t) }
func (c slowConn) SetDeadline(t time.Time) error {
	_ = c.arrived.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func newSlowConn(conn net.Conn, roundTrip time.Duration) net.Conn {
	type packet struct {
		data []byte
		due  time.Time
	}
	out, in := net.Pipe()
	packets := make(chan packet, 1000)
	go func() {
		defer close(packets)
		for {
			data := make([]byte, 1<<16)
			n, err := conn.Read(data)
			if err != nil {
				return
			}
			packets <- packet{data[:n], time.Now().Add(roundTrip)}
		}
	}()
	go func() {
		defer in.Close()
		for p := range packets {
			time.Sleep(time.Until(p.due))
			_, _ = in.Write(p.data)
		}
	}()
	return slowConn{conn, out}
}

// slowClient returns a client of the bubble's server over a slow network. Call close at the end.
func (b *bubble) slowClient(t *testing.T, roundTrip time.Duration, o rlock.Options,
) (client *rlock.Client, closeAll func()) {
	t.Helper()
	option := b.server.ClientOption()
	dial := option.DialCtxFn
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, c *tls.Config,
	) (net.Conn, error) {
		conn, err := dial(ctx, address, d, c)
		if err != nil {
			return nil, err
		}
		return newSlowConn(conn, roundTrip), nil
	}
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	client = newClientOn(t, redis, o)
	return client, func() {
		closeClient(t, client)
		redis.Close()
	}
}

func TestLockIsKeptWithRoundTripsThatTakeASixthOfTheLease(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		client, closeAll := b.slowClient(t, 550*time.Millisecond,
			rlock.Options{WatchdogLease: 3 * time.Second})
		defer closeAll()
		hold := take(t, client.NewLock("lock"), rlock.Watchdog)
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
		unlock(t, hold)
	})
}
