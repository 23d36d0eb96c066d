package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kill ends the server with SIGKILL and waits until it has ended: its port
// refuses connections from then on. A killed server stays so until
// [Server.Restart]. There is no gentler way: a lock has to survive this one.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.kill())
}

// Restart kills the server if it runs and starts it again on the same port, with
// the same directory and arguments. It returns when the server answers. Data is
// lost unless [WithAppendOnly] was given.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.kill())
	require.NoError(tb, s.launch())
	s.silent.Store(false)
}

// Pause stops the server with SIGSTOP: its connections stay open and connections
// are accepted by the system, but nothing is answered. tb's clean-up resumes it
// before it closes the clients that were made earlier, as a client may wait for
// an answer when it is closed.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.silent.Store(true)
	require.NoError(tb, s.backend.pause())
	tb.Cleanup(func() {
		if err := s.backend.resume(); err != nil {
			tb.Errorf("redistest: resume %s: %v", s.Addr(), err)
		}
	})
}

// Resume ends [Server.Pause]. A server that is not paused does not care.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.resume())
	s.silent.Store(false)
}

// Running tells whether the server has been started and has not ended since. One
// that is paused or isolated runs.
func (s *Server) Running() bool {
	select {
	case <-s.backend.stopped():
		return false
	default:
		return true
	}
}

// Isolate cuts the server off from everybody until [Server.Rejoin], which tb's
// clean-up calls as that of [Server.Pause] does. Nobody is told: connections stay
// open, and whatever is sent in either direction does not arrive.
//
// That is true of a container with [WithOwnNetwork], which is taken off its
// network: the server goes on working, its keys expire, and new connections are
// refused or hang. Of what was on its way some arrives late, after Rejoin. Anywhere
// else it is [Server.Pause]: the server does not work, does not see its keys
// expire until it is back, and then executes everything that was sent meanwhile.
func (s *Server) Isolate(tb testing.TB) {
	tb.Helper()
	s.silent.Store(true)
	require.NoError(tb, s.backend.isolate())
	tb.Cleanup(func() {
		if err := s.backend.rejoin(); err != nil {
			tb.Errorf("redistest: rejoin %s: %v", s.Addr(), err)
		}
	})
}

// Rejoin ends [Server.Isolate], and returns when the server answers at its old
// address. A server that is not isolated does not care.
func (s *Server) Rejoin(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.backend.rejoin())
	require.Eventually(tb, func() bool { return s.probe() == nil }, startTimeout, 10*time.Millisecond,
		"%s does not answer", s.Addr())
	s.silent.Store(false)
}
