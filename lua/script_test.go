package lua_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// operation is a script with the state that it changes.
type operation struct {
	name string
	// count is that of me, before and after; "" is a free lock.
	before, after string
	run           func(context.Context, rueidis.Client) error
}

// operations has each script, release once for each outcome.
var operations = []operation{
	{"acquire", "", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lockPlain(ctx, c, lock, me, lease)
		return err
	}},
	{"reenter", "1", "2", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Reenter(ctx, c, lua.Held{Lock: lock, Owner: me}, 2, lease)
		return err
	}},
	{"release one level", "2", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := unlock(ctx, c, lock, me, 1)
		return err
	}},
	{"release", "1", "", func(ctx context.Context, c rueidis.Client) error {
		_, err := unlock(ctx, c, lock, me, 0)
		return err
	}},
	{"renew", "1", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Renew(ctx, c, lease, []lua.Held{{Lock: lock, Owner: me}})
		return err
	}},
	{"force unlock", "1", "", func(ctx context.Context, c rueidis.Client) error {
		_, err := plain.ForceUnlock(ctx, c, lua.Classic)
		return err
	}},
	{"inspect", "1", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Inspect(ctx, c, lock)
		return err
	}},
}

func (o operation) prepare(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	if o.before != "" {
		hold(tb, s, lock, me, o.before, lease)
	}
}

func (o operation) requireDone(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	if o.after == "" {
		requireFree(tb, s, lock)
	} else {
		requireLock(tb, s, lock, map[string]string{me: o.after}, lease)
	}
	require.LessOrEqual(tb, s.DoInt(tb, "DBSIZE"), int64(1))
}

func TestScriptRunTwiceLeavesTheSameState(t *testing.T) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			s, c := start(t)
			o.prepare(t, s)
			for range 2 {
				require.NoError(t, o.run(t.Context(), c))
				o.requireDone(t, s)
			}
		})
	}
}

func TestScriptThatTheServerForgotIsSentOnce(t *testing.T) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			s, c := start(t)
			require.NoError(t, o.run(t.Context(), c)) // loads the script
			s.Do(t, "FLUSHALL")
			s.Do(t, "SCRIPT", "FLUSH")
			o.prepare(t, s)
			s.ResetStats(t)
			require.NoError(t, o.run(t.Context(), c))
			o.requireDone(t, s)
			require.NoError(t, o.run(t.Context(), c))
			o.requireDone(t, s)
			stats := s.CommandStats(t)
			require.Equal(t, 2, stats["evalsha"])
			require.Equal(t, 1, stats["eval"])
		})
	}
}

func TestFractionsOfAMillisecondDoNotExtendALease(t *testing.T) {
	s, c := start(t)
	monitor := s.Monitor(t)
	_, err := lockPlain(t.Context(), c, lock, me, 1500*time.Millisecond+999*time.Microsecond)
	require.NoError(t, err)
	for _, command := range monitor.Commands(t) {
		require.Equal(t, "1500", command[len(command)-1])
	}
}

func BenchmarkAcquireAndRelease(b *testing.B) {
	_, c := start(b)
	ctx := b.Context()
	for b.Loop() {
		if holder, err := lockPlain(ctx, c, lock, me, lease); err != nil || holder != nil {
			b.Fatal(holder, err)
		}
		if out, err := unlock(ctx, c, lock, me, 0); err != nil || !out.Held {
			b.Fatal(out, err)
		}
	}
}
