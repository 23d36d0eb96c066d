package watchdog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const lease = 30 * time.Second

var errNode = errors.New("node does not reply")

// inBubble runs test with a clock that moves only while all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// call is one call of a RenewFunc.
type call struct {
	at     time.Time
	group  string
	leases []*Lease
}

// store records the calls of its renew, and replies with what reply returns, or that all leases
// are held.
type store struct {
	reply func(ctx context.Context, c call) ([]Outcome, error)

	mu    sync.Mutex
	calls []call
}

func (s *store) renew(ctx context.Context, group string, leases []*Lease) ([]Outcome, error) {
	c := call{at: time.Now(), group: group, leases: append([]*Lease(nil), leases...)}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	reply := s.reply
	s.mu.Unlock()
	if reply != nil {
		return reply(ctx, c)
	}
	return all(leases, true), nil
}

// replyWith sets reply while calls may be in flight.
func (s *store) replyWith(reply func(context.Context, call) ([]Outcome, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

// seen returns the calls so far.
func (s *store) seen() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.calls...)
}

// of returns the calls so far that renewed l.
func (s *store) of(l *Lease) (calls []call) {
	for _, c := range s.seen() {
		for _, other := range c.leases {
			if other == l {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

func all(leases []*Lease, held bool) []Outcome {
	result := make([]Outcome, len(leases))
	for i := range result {
		result[i] = outcome(held)
	}
	return result
}

// losses records the calls of OnLost of one lease.
type losses struct {
	mu  sync.Mutex
	all []loss
}

func (ls *losses) add(_ *Lease, reason error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = append(ls.all, loss{time.Now(), reason})
}

func (ls *losses) seen() []loss {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return append([]loss(nil), ls.all...)
}

// require fails the test unless there was exactly one loss, at that instant and for that reason.
func (ls *losses) require(t *testing.T, at time.Time, reason error) {
	t.Helper()
	seen := ls.seen()
	require.Len(t, seen, 1)
	require.Zero(t, seen[0].at.Sub(at), "reported late")
	require.Equal(t, reason, seen[0].reason)
}

// failures records the calls of OnFailure.
type failures struct {
	mu  sync.Mutex
	all []failure
}

type failure struct {
	group  string
	leases int
	err    error
}

func (fs *failures) add(group string, leases int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.all = append(fs.all, failure{group, leases, err})
}

func (fs *failures) seen() []failure {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return append([]failure(nil), fs.all...)
}

// watch starts a watchdog that is closed with the test.
func watch(t *testing.T, o Options) *Watchdog {
	t.Helper()
	if o.Lease == 0 {
		o.Lease = lease
	}
	w := New(o)
	t.Cleanup(w.Close)
	return w
}

// addNew adds a new lease of the group that was acquired this instant.
func addNew(w *Watchdog, group string, renew bool) (*Lease, *losses) {
	ls := &losses{}
	l := &Lease{Group: group, OnLost: ls.add}
	w.Add(l, Deadline(time.Now(), w.options.Lease), renew)
	return l, ls
}

// sleep lets d pass, with everything due by then. In a bubble it takes no time.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// outcome returns what a store reports about a lease that is held or not.
func outcome(held bool) Outcome {
	if held {
		return Held
	}
	return Gone
}
