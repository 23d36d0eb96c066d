package inprocess

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Server is a Redis server in this process. Its methods are safe for concurrent use.
type Server struct {
	address string
	redis   *miniredis.Miniredis
	serving sync.WaitGroup

	mu          sync.Mutex
	down        bool                     // guarded by mu
	running     chan struct{}            // guarded by mu; closed unless the server is paused
	delay       time.Duration            // guarded by mu; of everything the server sends
	changed     chan struct{}            // guarded by mu; closed when delay changes
	connections map[*connection]struct{} // guarded by mu

	clock    clock
	monitor  monitor
	started  atomic.Int64              // when, by its own account, in seconds since 1970
	rejected atomic.Pointer[rejection] // nil if all scripts are executed
}

// rejection is what scripts end with that have a key with a part in its name.
type rejection struct{ err, part string }

var servers atomic.Int64

// New starts a server. The caller must Close it.
func New() (*Server, error) {
	s := &Server{
		// A MultiLock orders its parts by it.
		address: fmt.Sprintf("in-process-%d:6379", servers.Add(1)),
		redis:   miniredis.NewMiniRedis(),
		changed: make(chan struct{}), connections: make(map[*connection]struct{}),
		monitor: monitor{calls: make(map[string]int)}, running: closed(),
	}
	first, err := s.redis.Dial() // starts it without a listener
	if err != nil {
		return nil, fmt.Errorf("start the in-process server: %w", err)
	}
	first.Close()
	s.clock.start(s.redis)
	// A RedLock does not count a server that may have forgotten locks by a restart.
	s.started.Store(time.Now().AddDate(-1, 0, 0).Unix())
	s.redis.Server().SetPreHook(s.execute)
	return s, nil
}

// Redis returns the data of the server. It is reached also while the server is down.
func (s *Server) Redis() *miniredis.Miniredis { return s.redis }

// bufferSize is for each direction of a connection.
const bufferSize = 4 << 10

// ClientOption returns the options of a client of this server.
func (s *Server) ClientOption() rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress:       []string{s.address},
		ForceSingleClient: true,
		// The defaults take longer to allocate than all else.
		RingScaleEachConn: 7, ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize,
		PipelineMultiplex: -1, // one connection: the first command need not wait for another one
		// A pipe in memory does not break without notice, so it need not be checked each second.
		Dialer: net.Dialer{KeepAlive: time.Minute}, ConnWriteTimeout: 10 * time.Second,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.dial()
		},
	}
	Adapt(&option)
	return option
}

// Adapt makes options of a client work with the server: it refuses commands on connections with
// subscriptions, and CLIENT TRACKING.
func Adapt(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }

func (s *Server) dial() (net.Conn, error) {
	near, far := net.Pipe()
	if !s.serve(far) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return clientEnd{near}, nil
}

// Serve serves connections to a listener until it is closed.
func (s *Server) Serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !s.serve(conn) {
			conn.Close()
		}
	}
}

// serve serves a connection, unless the server is down.
func (s *Server) serve(end net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	c := newConnection(s, end)
	s.connections[c] = struct{}{}
	s.serving.Go(c.deliver)
	s.serving.Go(func() {
		<-c.closed
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, c)
	})
	s.redis.Server().ServeConn(c)
	return true
}

// SetDown breaks all connections and refuses new ones, or ends that. Data and leases are kept.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	var broken []*connection
	for c := range s.connections {
		if down {
			broken = append(broken, c)
		}
	}
	s.mu.Unlock()
	if down {
		s.Resume()
	}
	for _, c := range broken {
		c.Conn.Close()
	}
	for _, c := range broken {
		<-c.closed // its subscriptions have ended
	}
}

// Pause stops the execution of commands until Resume. Connections stay open.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.running:
		s.running = make(chan struct{})
	default:
	}
}

// Resume ends Pause.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.running:
	default:
		close(s.running)
	}
}

// Reject makes scripts end with an error before they are executed, or, with "", ends that.
func (s *Server) Reject(err string) { s.RejectNames("", err) }

// RejectNames is Reject for scripts that have a key with a part in its name.
func (s *Server) RejectNames(part, err string) {
	if err == "" {
		s.rejected.Store(nil)
		return
	}
	s.rejected.Store(&rejection{err, part})
}

// Forget makes the server forget all keys, as if it had just been started. It still knows scripts.
func (s *Server) Forget() {
	s.redis.FlushAll()
	s.started.Store(time.Now().Unix())
}

// waitUntilRunning blocks while the server is paused.
func (s *Server) waitUntilRunning() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	<-running
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// SetDelay delays everything that the server sends, including what is under way.
func (s *Server) SetDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
	close(s.changed)
	s.changed = make(chan struct{})
}

// waitUntilDue blocks until what was written at an instant may arrive. It returns false if closed
// is closed first.
func (s *Server) waitUntilDue(written time.Time, closed <-chan struct{}) bool {
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

// Close closes all connections, and waits until the server has ended.
func (s *Server) Close() {
	s.Resume()
	s.SetDown(true)
	s.redis.Close()
	s.serving.Wait()
}
