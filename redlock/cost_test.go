//go:build !race

package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/suite"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestEachStepIsOneCommandForEachNode(t *testing.T) {
	t.Parallel()
	inBubbleOf(t, rlock.Options{Anonymous: true}, atOnce, func(t *testing.T, b *bubble) {
		var hold, nested *rlock.Hold
		for _, c := range []struct {
			step   string
			f      func()
			script string // "" if nothing is sent
		}{
			{"Lock", func() { hold = take(t, b.lock, longLease) }, "quorum_acquire.lua"},
			{"nested Lock", func() { nested = takeWith(hold.Context(), t, b.lock, longLease) },
				"reenter.lua"},
			{"Unlock of a level", func() { unlock(t, nested) }, ""},
			{"Extend", func() { require.NoError(t, hold.Extend(t.Context(), 2*longLease)) },
				"renew.lua"},
			{"Unlock", func() { unlock(t, hold) }, "release.lua"},
		} {
			for _, n := range b.nodes {
				synctest.Wait()
				clear(n.calls)
			}
			c.f()
			synctest.Wait()
			for i, n := range b.nodes {
				calls := 0
				for _, times := range n.calls {
					calls += len(times)
				}
				require.Len(t, n.called(c.script), min(1, len(c.script)), "%s, %d", c.step, i)
				require.Equal(t, min(1, len(c.script)), calls, "%s, %d", c.step, i)
			}
		}
	})
}

// A node that hangs is asked only now and then, and costs the other nodes nothing. The scripts of a
// cycle call six commands.
func TestCycleCostsTwoScriptsForEachNodeThatReplies(t *testing.T) {
	t.Parallel()
	const cycles = 50
	for _, of := range []struct {
		last string
		fail func(suite.Server, testing.TB)
		most int // scripts of the last node
	}{
		{"up", func(suite.Server, testing.TB) {}, 2 * cycles},
		{"hung", suite.Server.Pause, 4},
		{"dead", suite.Server.Kill, 0},
	} {
		inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
			w.lock = redlock.NewOn(name, hasty, w.clients...)
			unlock(t, w.takeOnAll(t, longLease))
			synctest.Wait()
			for _, s := range w.Servers {
				suite.Asked(t, s)
			}
			last := w.Servers[4]
			of.fail(last, t)
			for range cycles {
				hold := take(t, w.lock, longLease)
				synctest.Wait()
				unlock(t, hold)
				time.Sleep(time.Second)
			}
			last.Resume(t)
			if of.last == "dead" {
				last.Restart(t)
			}
			for _, s := range w.Servers[:4] {
				scripts, commands := suite.Asked(t, s)
				require.Equal(t, 2*cycles, scripts, "the last node is %s", of.last)
				require.Equal(t, 8*cycles, commands, "the last node is %s", of.last)
			}
			scripts, _ := suite.Asked(t, last)
			require.LessOrEqual(t, scripts, of.most, "the last node is %s", of.last)
		})
	}
}
