package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kill ends the server with SIGKILL and waits until it has ended: from then on its port refuses
// connections, until [Server.Restart]. There is no gentler way, because a lock must survive this
// one.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.kill())
}

func (s *Server) kill() error {
	if s.scripts != nil {
		defer s.scripts.close() // connections end as the server ends them
	}
	return s.backend.Kill()
}

// Restart kills the server if it runs, and starts it again on the same port, with the same
// directory and arguments. It returns when the server replies. Data is lost unless [WithAppendOnly]
// was given.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.kill())
	require.NoError(tb, s.launch())
	s.silent.Store(false)
}

// Pause stops the server with SIGSTOP: its connections stay open, and the system accepts new ones,
// but the server does not reply. tb's clean-up resumes it before it closes clients made earlier,
// because a client may wait for a reply when it is closed.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.silent.Store(true)
	require.NoError(tb, s.backend.Pause())
	tb.Cleanup(func() {
		if err := s.backend.Resume(); err != nil {
			tb.Errorf("redistest: resume %s: %v", s.Addr(), err)
		}
	})
}

// Resume ends [Server.Pause]. It does nothing to a server that is not paused.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.Resume())
	s.silent.Store(false)
}

// Running reports whether the server has been started and has not ended since. A paused or isolated
// server runs.
func (s *Server) Running() bool {
	select {
	case <-s.backend.Stopped():
		return false
	default:
		return true
	}
}

// Isolate cuts the server off until [Server.Rejoin], which tb's clean-up calls like [Server.Resume]
// after Pause. Connections stay open, without a sign, and what is sent in either direction does not
// arrive.
//
// That holds for a container with [WithOwnNetwork], which is taken off its network: the server
// keeps working, its keys expire, and new connections are refused or hang. Some of what was on its
// way arrives late, after Rejoin. Anywhere else Isolate is [Server.Pause]: the server does not
// work, notices that keys have expired only when it is back, and then executes all that was sent
// meanwhile.
func (s *Server) Isolate(tb testing.TB) {
	tb.Helper()
	s.silent.Store(true)
	require.NoError(tb, s.backend.Isolate())
	tb.Cleanup(func() {
		if err := s.backend.Rejoin(); err != nil {
			tb.Errorf("redistest: rejoin %s: %v", s.Addr(), err)
		}
	})
}

// Rejoin ends [Server.Isolate], and returns when the server replies at its old address. It does
// nothing to a server that is not isolated.
func (s *Server) Rejoin(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.Rejoin())
	require.Eventually(tb, func() bool { return s.probe() == nil }, startTimeout,
		10*time.Millisecond,
		"%s does not reply", s.Addr())
	s.silent.Store(false)
}
