package wait_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// goroutines starts those of a pool until it is closed, and counts them.
type goroutines struct {
	closed  atomic.Bool
	started atomic.Int64 // in all
	now     atomic.Int64
	all     sync.WaitGroup
}

func (g *goroutines) start(f func()) bool {
	if g.closed.Load() {
		runtime.Gosched() // lets others come between the check and the start
		return false
	}
	g.started.Add(1)
	g.now.Add(1)
	g.all.Go(func() {
		defer g.now.Add(-1)
		f()
	})
	return true
}

// server replies to a call when a test says so.
type server struct {
	t    *testing.T
	pool *wait.Pool
	busy atomic.Int64  // calls in flight
	over chan struct{} // closed with the test, so that a failed one leaves no goroutines
}

// request is a call to the server. Closing reply is its reply.
type request struct {
	wait.Job
	reply chan struct{}
	runs  atomic.Int64
}

// newRequest returns a call that is not made yet. begun, if there is one, is called when it is in
// flight.
func (s *server) newRequest(timeout time.Duration, begun func()) *request {
	r := &request{reply: make(chan struct{})}
	r.Timeout = timeout
	r.Runner = wait.Func(func() {
		s.busy.Add(1)
		defer s.busy.Add(-1)
		r.runs.Add(1)
		if begun != nil {
			begun()
		}
		select {
		case <-r.reply:
		case <-s.over:
		}
	})
	return r
}

// do makes a call, which must be accepted.
func (s *server) do(timeout time.Duration, begun func()) *request {
	s.t.Helper()
	r := s.newRequest(timeout, begun)
	require.True(s.t, s.pool.Do(&r.Job))
	return r
}

// fill makes as many calls as may be in flight, and returns them.
func (s *server) fill() []*request {
	s.t.Helper()
	requests := make([]*request, wait.Workers)
	for i := range requests {
		requests[i] = s.do(time.Second, nil)
	}
	synctest.Wait()
	require.EqualValues(s.t, wait.Workers, s.busy.Load())
	return requests
}

// answer replies to requests, and returns when all that follows has happened.
func answer(requests ...*request) {
	for _, r := range requests {
		close(r.reply)
	}
	synctest.Wait()
}

// inBubble runs a test with its own server in a bubble, where "nothing more happens" can be waited
// for. When the test has replied to all calls, no goroutine may be left.
func inBubble(t *testing.T, test func(t *testing.T, s *server, g *goroutines)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &goroutines{}
		s := &server{t: t, pool: wait.NewPool(g.start), over: make(chan struct{})}
		defer close(s.over)
		test(t, s, g)
		synctest.Wait()
		require.Zero(t, g.now.Load(), "goroutines although there is nothing to do")
	})
}
