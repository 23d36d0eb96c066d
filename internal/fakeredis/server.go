package fakeredis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// Handler executes one command and returns its reply: nil, a string, an int, a [Status], an error,
// or a []any of these. args[0] is the command's name as sent. It is called by one goroutine per
// connection, and the connection's next command waits for it; it may block.
type Handler func(args []string) any

// Server is one server. Its methods are safe for concurrent use. Create it in the bubble that uses
// it, and close it.
type Server struct {
	serving sync.WaitGroup

	mu       sync.Mutex
	handlers map[string]Handler       // guarded by mu; by name in upper case
	clients  map[*connection]struct{} // guarded by mu
	running  chan struct{}            // guarded by mu; closed unless the server is paused
	closed   chan struct{}            // closed by Close
}

// New returns a server that is running.
func New() *Server {
	s := &Server{
		handlers: make(map[string]Handler),
		clients:  make(map[*connection]struct{}),
		running:  make(chan struct{}),
		closed:   make(chan struct{}),
	}
	close(s.running)
	return s
}

// Start returns a server that runs until the test ends, and a client of it.
func Start(tb testing.TB) (*Server, rueidis.Client) {
	tb.Helper()
	s := New()
	tb.Cleanup(s.Close)
	c, err := rueidis.NewClient(s.ClientOption())
	if err != nil {
		tb.Fatal("fakeredis: ", err)
	}
	tb.Cleanup(c.Close)
	return s, c
}

// Handle makes h execute the command of that name from now on.
func (s *Server) Handle(name string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[strings.ToUpper(name)] = h
}

// ClientOption returns the options of a client of this server.
func (s *Server) ClientOption() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{"fake:6379"},
		ForceSingleClient: true,
		DisableCache:      true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.Dial()
		},
	}
}

// Dial returns a new connection to the server. Like with a stopped process, it works while the
// server is paused.
func (s *Server) Dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil, errors.New("fakeredis: the server is closed")
	default:
	}
	near, far := net.Pipe()
	c := newConnection(s, far)
	s.clients[c] = struct{}{}
	s.serving.Go(c.serve)
	return near, nil
}

// Publish sends a message to the subscribers of a channel and returns how many there are.
func (s *Server) Publish(channel, message string) int {
	receivers := 0
	for _, c := range s.connections() {
		if c.publish(channel, message) {
			receivers++
		}
	}
	return receivers
}

// Pause stops the execution of commands, also of those that are sent to new connections. They are
// executed after Resume, unless the server is closed, even if their client has hung up meanwhile.
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

// Disconnect closes all open connections.
func (s *Server) Disconnect() {
	for _, c := range s.connections() {
		c.close()
	}
}

// Close closes all connections and waits until the server has ended. It waits for a handler that
// blocks.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.Disconnect()
	s.serving.Wait()
}

// ready waits while the server is paused. It returns false when the server is closed.
func (s *Server) ready() bool {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	select {
	case <-running:
		return true
	case <-s.closed:
		return false
	}
}

func (s *Server) handler(name string) (Handler, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.handlers[name]
	return h, ok
}

func (s *Server) connections() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	clients := make([]*connection, 0, len(s.clients))
	for c := range s.clients {
		clients = append(clients, c)
	}
	return clients
}

func (s *Server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}
