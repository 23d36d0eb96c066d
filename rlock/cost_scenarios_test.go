//go:build !race

package rlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/suite"
	"holdfast/rlock"
)

// traffic is what clients and a server exchange: the scripts that clients send, the commands that
// the server executes, including those of scripts, and the bytes on all connections.
type traffic struct{ scripts, commands, bytes float64 }

// crowd is some processes with some goroutines each, on a server in a bubble. Each goroutine wants
// a lock of its own, or all want the same lock.
type crowd struct {
	processes, goroutines int
	ownKeys               bool
	delay                 time.Duration // of each reply

	server suite.Server
	locks  []*rlock.Lock // one for each goroutine
	bytes  atomic.Int64
}

// open connects the clients, and makes the server load the scripts.
func (c *crowd) open(t *testing.T) {
	t.Helper()
	c.server = suite.Virtual.Start(t, 1)[0]
	for range c.processes {
		client := newClientOn(t, c.server.Client(t, c.count),
			rlock.Options{Logger: slog.New(slog.DiscardHandler), Anonymous: true})
		warm(t, client, "order")
		for range c.goroutines {
			name := "order"
			if c.ownKeys {
				name = fmt.Sprintf("order:%02d", len(c.locks))
			}
			c.locks = append(c.locks, client.NewLock(name))
		}
	}
	c.server.(interface{ SetDelay(d time.Duration) }).SetDelay(c.delay)
}

// count makes a client count its bytes. Its connections check themselves only once an hour.
func (c *crowd) count(o *rueidis.ClientOption) {
	dial := o.DialCtxFn
	o.Dialer.KeepAlive = time.Hour
	o.DialCtxFn = func(
		ctx context.Context, to string, d *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		conn, err := dial(ctx, to, d, config)
		return countedConn{conn, &c.bytes}, err
	}
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// costs returns the traffic of some acquisitions, for each of them.
func (c *crowd) costs(t *testing.T, acquisitions int, acquire func()) traffic {
	t.Helper()
	synctest.Wait()
	suite.Asked(t, c.server)
	c.bytes.Store(0)
	acquire()
	synctest.Wait()
	scripts, commands := suite.Asked(t, c.server)
	n := float64(acquisitions)
	return traffic{float64(scripts) / n, float64(commands) / n, float64(c.bytes.Load()) / n}
}

// cycles locks and unlocks so many times in each goroutine.
func (c *crowd) cycles(t *testing.T, n int) {
	t.Helper()
	var work sync.WaitGroup
	for _, lock := range c.locks {
		work.Go(func() {
			for range n {
				hold, err := lock.Lock(t.Context(), rlock.Watchdog)
				if assert.NoError(t, err) {
					assert.NoError(t, hold.Unlock())
				}
			}
		})
	}
	work.Wait()
}

// The scenarios are those of bench. In virtual time no machine is too busy, so only the order in
// which goroutines run is left to chance.
func TestTrafficOfEachScenario(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name string
		*crowd
		most traffic
	}{
		{"uncontended", &crowd{processes: 1, goroutines: 1, ownKeys: true}, traffic{2, 8, 400}},
		{"keys64", &crowd{processes: 1, goroutines: 64, ownKeys: true}, traffic{2, 8, 400}},
		// Of 16 acquisitions, 15 are local turns.
		{"onekey64", &crowd{processes: 1, goroutines: 64}, traffic{0.085, 0.6, 35}},
		{"onekey64-1ms", &crowd{processes: 1, goroutines: 64, delay: time.Millisecond},
			traffic{0.085, 0.6, 35}},
		{"processes64", &crowd{processes: 64, goroutines: 1}, traffic{2.1, 13.7, 900}},
		{"processes4x16", &crowd{processes: 4, goroutines: 16}, traffic{0.2, 1.35, 95}},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				of.open(t)
				const each = 40 // enough that the start, when all ask at once, hardly counts
				got := of.costs(t, each*len(of.locks), func() { of.cycles(t, each) })
				t.Logf("%+v", got)
				require.LessOrEqual(t, got.scripts, of.most.scripts)
				require.LessOrEqual(t, got.commands, of.most.commands)
				require.LessOrEqual(t, got.bytes, of.most.bytes)
			})
		})
	}
}

// From the release in one process until the waiter in another has the lock.
func TestTrafficOfHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{processes: 2, goroutines: 1}
		c.open(t)
		hold := take(t, c.locks[0], rlock.Watchdog)
		waiter := lockInBackground(t.Context(), c.locks[1], rlock.Watchdog)
		time.Sleep(time.Second) // until it is registered
		var next *rlock.Hold
		got := c.costs(t, 1, func() {
			unlock(t, hold)
			next = acquired(t, waiter)
		})
		t.Logf("%+v", got)
		unlock(t, next)
		require.Equal(t, traffic{1, 7, got.bytes}, got)
		require.LessOrEqual(t, got.bytes, 410.0)
	})
}
