package watchdog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 30 * time.Second

var errNode = errors.New("node does not reply")

// call is one call of Options.Renew.
type call struct {
	at     time.Time
	group  string
	leases []*Lease
}

// notes is a list that several goroutines append to.
type notes[T any] struct {
	mu  sync.Mutex
	all []T
}

func (n *notes[T]) add(note T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, note)
}

func (n *notes[T]) seen() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// store records the calls of its renew, and replies with what reply returns, or that all leases
// are held.
type store struct {
	notes[call]
	reply  atomic.Pointer[func(context.Context, call) ([]Outcome, error)]
	failed notes[failure] // the calls of OnFailure
}

type failure struct {
	group  string
	leases int
	err    error
}

func (s *store) renew(ctx context.Context, group string, leases []*Lease) ([]Outcome, error) {
	c := call{at: time.Now(), group: group, leases: slices.Clone(leases)}
	s.add(c)
	if reply := s.reply.Load(); reply != nil {
		return (*reply)(ctx, c)
	}
	return all(leases), nil
}

// replyWith sets reply while calls may be in flight.
func (s *store) replyWith(reply func(context.Context, call) ([]Outcome, error)) {
	s.reply.Store(&reply)
}

// of returns the calls so far that renewed l.
func (s *store) of(l *Lease) (calls []call) {
	for _, c := range s.seen() {
		if slices.Contains(c.leases, l) {
			calls = append(calls, c)
		}
	}
	return calls
}

// all says that all leases are held.
func all(leases []*Lease) []Outcome { return slices.Repeat([]Outcome{Held}, len(leases)) }

// slow replies that all leases are held after that time, unless the context of the call ends first.
func slow(roundTrip time.Duration) func(context.Context, call) ([]Outcome, error) {
	return func(ctx context.Context, c call) ([]Outcome, error) {
		select {
		case <-time.After(roundTrip):
			return all(c.leases), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// onLost is the subject of a lease, as the function that is called with its loss.
type onLost func(l *Lease, reason error)

func (f onLost) Lost(l *Lease, reason error) { f(l, reason) }

// grouped is a subject that has a group.
type grouped struct {
	onLost
	group string
}

// groupOf implements Options.Group. A lease with another subject has the group "node".
func groupOf(l *Lease) (group string, split uint64) {
	if s, ok := l.Subject.(grouped); ok {
		return s.group, 0
	}
	return "node", 0
}

// losses records the losses of one lease.
type losses struct{ notes[loss] }

type loss struct {
	at     time.Time
	reason error
}

func (ls *losses) lose(_ *Lease, reason error) { ls.add(loss{time.Now(), reason}) }

// require fails the test unless there was exactly one loss, at that instant and for that reason.
func (ls *losses) require(t *testing.T, at time.Time, reason error) {
	t.Helper()
	seen := ls.seen()
	require.Len(t, seen, 1)
	require.Zero(t, seen[0].at.Sub(at), "reported late")
	require.Equal(t, reason, seen[0].reason)
}

// watch starts a watchdog, which is closed with the test, and its store.
func watch(t *testing.T, o Options) (*Watchdog, *store) {
	t.Helper()
	s := new(store)
	if o.Renew == nil {
		o.Renew = s.renew
	}
	if o.Group == nil {
		o.Group = groupOf
	}
	o.Lease = lease
	o.OnFailure = func(group string, leases int, err error) {
		s.failed.add(failure{group, leases, err})
	}
	w := New(o)
	t.Cleanup(w.Close)
	return w, s
}

// inBubble runs a test with a watchdog whose clock moves only while all goroutines wait.
func inBubble(t *testing.T, o Options, test func(t *testing.T, w *Watchdog, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, s := watch(t, o)
		test(t, w, s)
	})
}

// addNew adds a new lease of the group that was acquired this instant.
func addNew(w *Watchdog, group string, renew bool) (*Lease, *losses) {
	ls := &losses{}
	l := &Lease{Subject: grouped{ls.lose, group}}
	w.Add(l, Deadline(time.Now(), w.options.Lease), renew)
	return l, ls
}

// sleep lets d pass, with everything due by then. In a bubble it takes no time.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
