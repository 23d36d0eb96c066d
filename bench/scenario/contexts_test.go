package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/worker"
)

// calls is a lock without a server that records the contexts of its calls, once for successive
// calls with the same one.
type calls struct {
	mu           sync.Mutex
	lock, unlock []context.Context
}

func (c *calls) add(ctx context.Context, to *[]context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(*to); n == 0 || (*to)[n-1] != ctx {
		*to = append(*to, ctx)
	}
}

func (c *calls) Lock(ctx context.Context) error {
	c.add(ctx, &c.lock)
	return nil
}

func (c *calls) Unlock(ctx context.Context) error {
	c.add(ctx, &c.unlock)
	return ctx.Err()
}

// fake is a client without a server.
type fake struct{ locks []*calls }

func (f *fake) Close() {}

func (f *fake) Locker(string) contest.Locker {
	f.locks = append(f.locks, &calls{})
	return f.locks[len(f.locks)-1]
}

// called opens a session with a lock for each of n goroutines.
func called(t *testing.T, n int, of contexts) (*session, []*calls) {
	path, remove, err := worker.NewShared()
	require.NoError(t, err)
	t.Cleanup(remove)
	shared, err := worker.OpenShared(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shared.Close()) })
	f := &fake{}
	s := newSession(f, open{Number: -1, Locks: make([]string, n), Contexts: of})
	s.shared = shared
	t.Cleanup(s.cancel)
	return s, f.locks
}

// soon returns the end of a run: late enough for all goroutines to have begun.
func soon() time.Duration { return measure.Now() + 200*time.Millisecond }

func TestEveryTaskCallsLocksWithCancellableContexts(t *testing.T) {
	for name, task := range map[string]func(*session) error{
		"cycles": func(s *session) error {
			_, err := s.cycles(3)
			return err
		},
		"quorum cycles": func(s *session) error {
			_, err := s.quorumCycles(quorumTask{Most: 3})
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
			return s.holder(handoverTask{Until: measure.Now() + time.Minute, Most: 1})
		},
		"waiter": func(s *session) error {
			atomic.StoreInt64(s.word(heldWord), 1)
			atomic.StoreInt64(s.word(releasedWord), 1)
			time.AfterFunc(20*time.Millisecond, func() { atomic.StoreInt64(s.word(stopWord), 1) })
			_, err := s.waiter()
			return err
		},
		"park": func(s *session) error {
			_, _ = s.park(park{Each: 1}) // fails: the locks are free
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, cs := called(t, 2, cancellable)
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
	s, cs := called(t, 2, cancellable)
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
	s, cs := called(t, 1, cancellable)
	out := s.run(run{Until: soon(), Hold: 300 * time.Millisecond, Cut: true})
	require.Empty(t, out.Errors)
	require.Equal(t, 1, out.Total)
	require.ErrorIs(t, cs[0].lock[0].Err(), context.Canceled)
	require.NoError(t, cs[0].unlock[0].Err())
}

func TestContextsEndAfterTheClientIsClosed(t *testing.T) {
	s, _ := called(t, 1, cancellable)
	closing := &closer{ctx: s.contexts[0]}
	s.client, s.shared = closing, nil
	s.close()
	require.NoError(t, closing.err)
	require.ErrorIs(t, s.contexts[0].Err(), context.Canceled)
}

// closer records whether a context has ended when it is closed.
type closer struct {
	fake
	ctx context.Context
	err error
}

func (c *closer) Close() { c.err = c.ctx.Err() }

func TestCallersThatAskForBackgroundGetIt(t *testing.T) {
	s, cs := called(t, 2, background)
	_, err := s.cycles(3)
	require.NoError(t, err)
	require.Empty(t, s.run(run{Until: soon()}).Errors)
	for _, c := range cs {
		require.Equal(t, []context.Context{context.Background()}, c.lock)
		require.Equal(t, []context.Context{context.Background()}, c.unlock)
	}
}

// beside returns a table with Background beside contexts that can be cancelled.
func beside() *report.Table {
	return &report.Table{
		Scenario: "some", Title: "Some", About: "What it is.", Floor: "raw scripts",
		Columns: besideBackground([]report.Column{
			{Key: "p50", Head: "p50", Unit: report.Duration, Ratio: true},
			{Key: "commands", Head: "commands", Unit: report.Decimal},
			{Key: "allocs", Head: "allocs", Unit: report.Decimal},
		}, "p50", "allocs"),
	}
}

func TestBackgroundIsAColumnAndComparedWithTheFloorsBackground(t *testing.T) {
	type at struct {
		name string
		contexts
	}
	of := map[at]report.Figures{
		{"raw scripts", cancellable}: {"p50": 2000, "commands": 2, "allocs": 0},
		{"raw scripts", background}:  {"p50": 1000, "commands": 2, "allocs": 0},
		{ours, cancellable}:          {"p50": 3000, "commands": 2, "allocs": 7},
		{ours, background}:           {"p50": 1200, "commands": 2, "allocs": 5},
		{redisson, cancellable}:      {"p50": 8000, "commands": 3},
	}
	var order []at
	e, table := &Env{Log: func(string, ...any) {}, inJava: []string{redisson}}, beside()
	err := e.takeTurnsWith(t.Context(), table, []string{"raw scripts", ours}, 2, func(
		_ context.Context, c entrant, _ *report.Row, i int,
	) (report.Figures, error) {
		if i == 0 {
			order = append(order, at{c.Name, c.contexts})
		}
		if i == 1 && c.Name == ours && c.contexts == background {
			return nil, errors.New("no answer")
		}
		return of[at{c.Name, c.contexts}], nil
	}, cancellable, background)
	require.NoError(t, err)
	require.Equal(t, []at{
		{"raw scripts", cancellable}, {ours, cancellable}, {redisson, cancellable},
		{"raw scripts", background}, {ours, background},
	}, order, "those that are compared follow each other")
	require.Equal(t, "### Some (`some`)\n\nWhat it is.\n\n"+
		"| contestant  |    p50 | x floor | commands | allocs |"+
		" Background p50 | x floor | Background allocs |\n"+
		"| ----------- | -----: | ------: | -------: | -----: |"+
		" -------------: | ------: | ----------------: |\n"+
		"| raw scripts | 2.0 us |  1.00 x |     2.00 |   0.00 |"+
		"         1.0 us |  1.00 x |              0.00 |\n"+
		"| holdfast    | 3.0 us |  1.50 x |     2.00 |   7.00 |"+
		"         1.2 us |  1.20 x |              5.00 |\n"+
		"| redisson    | 8.0 us |  4.00 x |     3.00 |      - |"+
		"              - |       - |                 - |\n"+
		"\nholdfast: Background round 2: no answer.\n"+
		"\nredisson: Background: Java has no contexts.\n", table.Text())
}

func TestJSONKeepsTheKeysOfCancellableContexts(t *testing.T) {
	row := &report.Row{}
	for i := range 2 {
		entrant{contexts: cancellable}.add(row, i, report.Figures{"p50": 2})
		entrant{contexts: background}.add(row, i, report.Figures{"p50": 1})
	}
	raw, err := json.Marshal(row.Rounds)
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"p50": 2, "Background p50": 1},
		{"p50": 2, "Background p50": 1}
	]`, string(raw))
}
