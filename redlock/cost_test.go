package redlock_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

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
