package rlocktest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	resp "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
)

// server is a Redis server in this process. Clients reach it by pipes in memory.
type server struct {
	address string
	redis   *miniredis.Miniredis
	serving sync.WaitGroup

	mu          sync.Mutex
	down        bool                     // guarded by mu
	delay       time.Duration            // guarded by mu; of everything the server sends
	changed     chan struct{}            // guarded by mu; closed when delay changes
	connections map[*connection]struct{} // guarded by mu

	clock sync.Mutex
	ahead time.Duration // guarded by clock; by how much the server's clock is ahead of this process's
	seen  time.Time     // guarded by clock; the instant up to which leases have run
	// renewed has the strangers whose leases are renewed, by lock.
	renewed   map[string]string // guarded by clock
	strangers int               // guarded by clock; how many there have been
}

var servers atomic.Int64

func newServer() (*server, error) {
	s := &server{
		// A MultiLock orders its parts by it.
		address: fmt.Sprintf("rlocktest-%d:6379", servers.Add(1)),
		redis:   miniredis.NewMiniRedis(),
		changed: make(chan struct{}), connections: make(map[*connection]struct{}),
		seen: time.Now(), renewed: make(map[string]string),
	}
	first, err := s.redis.Dial() // starts it without a listener
	if err != nil {
		return nil, fmt.Errorf("rlocktest: start the server: %w", err)
	}
	first.Close()
	s.redis.SetTime(s.seen)
	s.redis.Server().SetPreHook(s.handle)
	return s, nil
}

// handle executes the commands that miniredis lacks, and reports whether it did. Commands inside
// scripts come here too.
func (s *server) handle(peer *resp.Peer, command string, args ...string) bool {
	if command == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "server") {
		// A RedLock does not count a server that may have forgotten locks by a restart.
		peer.WriteBulk("# Server\r\nredis_version:7.0.0\r\nuptime_in_seconds:31536000\r\n")
		return true
	}
	return false
}

// clientOption returns the options of a client of this server.
func (s *server) clientOption() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{s.address},
		ForceSingleClient: true,
		// miniredis refuses commands on a connection with subscriptions, and CLIENT TRACKING.
		AlwaysRESP2: true, DisableCache: true,
		RingScaleEachConn: 7, // the default takes longer to allocate than all else
		// A pipe in memory does not break without notice. A bubble of testing/synctest would spend
		// its time with a ping per second and connection.
		Dialer: net.Dialer{KeepAlive: time.Minute}, ConnWriteTimeout: 10 * time.Second,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.dial()
		},
	}
}

func (s *server) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	c := newConnection(s, far)
	s.connections[c] = struct{}{}
	s.serving.Go(c.deliver)
	s.serving.Go(func() {
		<-c.closed
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, c)
	})
	s.redis.Server().ServeConn(c)
	return near, nil
}

// setDown breaks all connections and refuses new ones, or ends that.
func (s *server) setDown(down bool) {
	s.mu.Lock()
	s.down = down
	var broken []*connection
	for c := range s.connections {
		if down {
			broken = append(broken, c)
		}
	}
	s.mu.Unlock()
	for _, c := range broken {
		c.Conn.Close()
	}
	for _, c := range broken {
		<-c.closed // its subscriptions have ended
	}
}

// setDelay delays everything that the server sends, including what is under way.
func (s *server) setDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
	close(s.changed)
	s.changed = make(chan struct{})
}

// waitUntilDue blocks until what was written at an instant may arrive. It returns false if closed
// is closed first.
func (s *server) waitUntilDue(written time.Time, closed <-chan struct{}) bool {
	for {
		s.mu.Lock()
		delay, changed := s.delay, s.changed
		s.mu.Unlock()
		left := time.Until(written.Add(delay))
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-closed:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// catchUp makes leases run up to the present instant. Nothing else moves the clock of miniredis.
// Its own ClockTTL would let a key expire in the middle of a script, which Redis never does.
func (s *server) catchUp() {
	s.clock.Lock()
	defer s.clock.Unlock()
	now := time.Now().Add(s.ahead)
	elapsed := now.Sub(s.seen)
	s.renewStrangers(elapsed)
	s.redis.FastForward(elapsed)
	s.redis.SetTime(now)
	s.seen = now
}

// advance moves the server's clock.
func (s *server) advance(d time.Duration) {
	s.clock.Lock()
	s.ahead += d
	s.clock.Unlock()
	s.catchUp()
}

// close closes all connections, and waits until the server has ended.
func (s *server) close() {
	s.setDown(true)
	s.redis.Close()
	s.serving.Wait()
}
