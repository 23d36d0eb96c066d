package scenario

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/worker"
)

// calls is a lock without a server that remembers the contexts of its calls, one for those in a row
// that had the same.
type calls struct {
	mu           sync.Mutex
	lock, unlock []context.Context
}

func (c *calls) add(to *[]context.Context, ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(*to); n == 0 || (*to)[n-1] != ctx {
		*to = append(*to, ctx)
	}
}

func (c *calls) Locker(string) contest.Locker { return c }
func (c *calls) Close()                       {}

func (c *calls) Lock(ctx context.Context) error {
	c.add(&c.lock, ctx)
	return nil
}

func (c *calls) Unlock(ctx context.Context) error {
	c.add(&c.unlock, ctx)
	return ctx.Err()
}

// called opens a session with a lock for each of n goroutines.
func called(t *testing.T, n int) (*session, []*calls) {
	path, remove, err := worker.NewShared()
	require.NoError(t, err)
	t.Cleanup(remove)
	s := &session{client: &calls{}, number: -1}
	shared, err := worker.OpenShared(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shared.Close()) })
	s.shared = shared
	var cs []*calls
	for range n {
		c := &calls{}
		cs, s.lockers = append(cs, c), append(s.lockers, c)
	}
	s.contexts, s.cancel = cancellable.make(n)
	t.Cleanup(s.cancel)
	return s, cs
}

// soon is the end of a run: late enough for all goroutines to have begun.
func soon() time.Duration { return measure.Now() + 200*time.Millisecond }

func TestEveryTaskCallsLocksWithContextsThatCanBeCancelled(t *testing.T) {
	for name, task := range map[string]func(*session) error{
		"cycles": func(s *session) error {
			_, err := s.cycles(3)
			return err
		},
		"quorum cycles": func(s *session) error {
			_, err := s.quorumCycles(quorate{Most: 3})
			return err
		},
		"lock all": (*session).lockAll,
		"run": func(s *session) error {
			s.run(run{Until: soon()})
			return nil
		},
		"run, cut": func(s *session) error {
			s.run(run{Until: soon(), Cut: true})
			return nil
		},
		"holder": func(s *session) error {
			atomic.StoreInt64(s.word(waitingWord), 1)
			atomic.StoreInt64(s.word(doneWord), 1)
			return s.holder(handing{Until: measure.Now() + time.Minute, Most: 1})
		},
		"waiter": func(s *session) error {
			atomic.StoreInt64(s.word(heldWord), 1)
			atomic.StoreInt64(s.word(releasedWord), 1)
			time.AfterFunc(20*time.Millisecond, func() { atomic.StoreInt64(s.word(stopWord), 1) })
			_, err := s.waiter()
			return err
		},
		"park": func(s *session) error {
			_, _ = s.park(park{Each: 1}) // an error: the locks are free
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, cs := called(t, 2)
			require.NoError(t, task(s))
			require.NotEmpty(t, cs[0].lock)
			for _, c := range cs {
				for _, ctx := range append(c.lock, c.unlock...) {
					require.NotNil(t, ctx.Done())
				}
			}
		})
	}
}

func TestGoroutinesShareNoContext(t *testing.T) {
	s, cs := called(t, 2)
	out := s.run(run{Until: soon()})
	require.Empty(t, out.Errors)
	require.NotEmpty(t, cs[0].lock)
	require.NotEmpty(t, cs[1].lock)
	require.NotSame(t, cs[0].lock[0], cs[1].lock[0])
	for i, c := range cs {
		for _, ctx := range append(c.lock, c.unlock...) {
			require.Same(t, s.contexts[i], ctx, "it lives as long as the client")
		}
	}
}

func TestUnlockIsNotCutWhenTheTimeIsUp(t *testing.T) {
	s, cs := called(t, 1)
	out := s.run(run{Until: soon(), Hold: 300 * time.Millisecond, Cut: true})
	require.Empty(t, out.Errors)
	require.Equal(t, 1, out.Total)
	require.ErrorIs(t, cs[0].lock[0].Err(), context.Canceled)
	require.NoError(t, cs[0].unlock[0].Err())
}

func TestContextsEndAfterTheClientIsClosed(t *testing.T) {
	s, _ := called(t, 1)
	closing := &closer{ctx: s.contexts[0]}
	s.client, s.shared = closing, nil
	s.close()
	require.NoError(t, closing.err)
	require.ErrorIs(t, s.contexts[0].Err(), context.Canceled)
}

// closer notes whether a context has ended when it is closed.
type closer struct {
	calls
	ctx context.Context
	err error
}

func (c *closer) Close() { c.err = c.ctx.Err() }
