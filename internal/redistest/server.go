package redistest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/portlock"
)

const (
	startTimeout = 20 * time.Second
	pollInterval = 2 * time.Millisecond
)

// Server is one Redis server that belongs to one test. Its methods are safe for concurrent use,
// except those that take a testing.TB: they may end the test, and belong to its goroutine.
type Server struct {
	settings *settings
	backend  Backend
	port     int
	reserved portlock.Port // until the end of the test, also while the server does not run
	scripts  *scriptProxy  // between clients and the server; nil: they send scripts as they are

	silent atomic.Bool // paused or isolated
}

// Start starts a server on a free port of 127.0.0.1 and returns when it replies. It persists
// nothing unless [WithAppendOnly] is given. tb's clean-up kills the server, whatever state the test
// left it in, and shows its log if the test failed. tb fails when no server can be started.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	return StartAll(tb, 1, opts...)[0]
}

// StartAll is [Start] for n servers at once, each with all of opts. They know nothing of each
// other.
func StartAll(tb testing.TB, n int, opts ...Option) []*Server {
	tb.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = prepare(tb, opts)
	}
	failed := make(chan error, n)
	for _, s := range servers {
		go func() { failed <- s.launchOnFreePort() }()
	}
	var err error
	for range servers {
		err = cmp.Or(err, <-failed) // the others mostly report the same
	}
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return servers
}

// prepare returns a server that does not run yet.
func prepare(tb testing.TB, opts []Option) *Server {
	tb.Helper()
	settings := collect(tb, opts)
	s := &Server{settings: settings, backend: newBackend(tb, settings),
		scripts: newScriptProxy(tb, settings)}
	tb.Cleanup(func() {
		if s.scripts != nil {
			s.scripts.end(tb, s.backend.Output())
		}
		if tb.Failed() {
			tb.Logf("redistest: log of %s ends with\n%s", s.Addr(), s.logTail())
		}
		if err := s.backend.Remove(); err != nil {
			tb.Errorf("redistest: stop %s: %v", s.Addr(), err)
		}
		s.reserved.Release()
	})
	return s
}

// launchOnFreePort tries several ports, because another process may take one before the server
// does.
func (s *Server) launchOnFreePort() error {
	const attempts = 5
	free := portlock.Free
	if s.settings.clusterNode {
		free = freeClusterPort
	}
	for attempt := 1; ; attempt++ {
		var err error
		s.reserved, err = free()
		if err != nil {
			return err
		}
		s.port = s.reserved.Number
		err = s.launch()
		if err == nil {
			return nil
		}
		if !portTaken(err) || attempt == attempts {
			return err
		}
		s.reserved.Release()
	}
}

// portTaken reports whether a server did not start because of its port.
func portTaken(err error) bool {
	text := strings.ToLower(err.Error())
	// The first is the system's message, which Redis and Docker quote. The second is Docker's, when
	// a container with the port starts or ends just now.
	return strings.Contains(text, "address already in use") ||
		strings.Contains(text, "port is already allocated")
}

// Addr returns host:port, the same for the life of the server.
func (s *Server) Addr() string {
	if s.scripts != nil {
		return s.scripts.port.Addr()
	}
	return s.direct()
}

// direct is Addr of the server itself, whatever stands before it.
func (s *Server) direct() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// TLSConfig returns a new client configuration that trusts the server, or nil for a server without
// [WithTLS].
func (s *Server) TLSConfig() *tls.Config {
	if s.settings.tls == nil {
		return nil
	}
	return s.settings.tls.config()
}

// TLSFiles returns the files of a server with [WithTLS]: the certificate of its authority, its own,
// which clients may use as well, and the key of that.
func (s *Server) TLSFiles() (authority, certificate, key string) {
	c := s.settings.tls
	return c.authorityFile, c.certificateFile, c.keyFile
}

// launch starts the server and waits until it replies.
func (s *Server) launch() error {
	if err := s.backend.Launch(s.port); err != nil {
		return err
	}
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		err := s.probe()
		if err == nil && s.scripts != nil {
			return s.scripts.listen(s.direct())
		}
		if err == nil {
			return nil
		}
		select {
		case <-s.backend.Stopped():
			return fmt.Errorf("the server ended at once: %s", s.logTail())
		case <-deadline.C:
			return errors.Join(fmt.Errorf("%s does not reply after %v", s.Addr(), startTimeout),
				err)
		case <-poll.C:
		}
	}
}

// probe fails unless this very server replies, its data loaded. The process id matters: if another
// process took the port, its server would reply here until this one has given up.
func (s *Server) probe() error {
	c, err := s.dial(time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.call("PING"); err != nil {
		return err
	}
	reply, err := c.call("INFO", "server")
	if err != nil {
		return err
	}
	info, _ := reply.(string)
	if id := infoField(info, "process_id"); !s.backend.Owns(id) {
		return fmt.Errorf("%s belongs to process %q, which was not started here", s.Addr(), id)
	}
	return nil
}

func (s *Server) logTail() string {
	const longest = 4000
	output := strings.TrimSpace(s.backend.Output())
	if len(output) > longest {
		output = "…" + output[len(output)-longest:]
	}
	return output
}

// infoField returns the value of a field of an INFO reply, or "".
func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Log returns what the server has logged.
func (s *Server) Log() string { return s.backend.Output() }
