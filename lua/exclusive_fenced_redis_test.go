//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestFencedLockWhoseCounterIsBrokenIsReleasedAndAnnounced(t *testing.T) {
	for name, write := range map[string][]string{
		"a text":     {"SET", counter, "a page"},
		"at its end": {"SET", counter, "9223372036854775807"},
		"a list":     {"RPUSH", counter, "a"},
	} {
		for to, p := range map[string]lua.HandOver{
			"others": toAll,
			"next":   {Successor: fenced.Registration(next, waiterLease), SuccessorFirst: true},
		} {
			t.Run(name+" to "+to, func(t *testing.T) {
				s, c := startHeld(t)
				s.Do(t, write...)
				sub := attend(t, s, far)
				register(t, c, fenced, older)
				require.Equal(t, lua.Released{Held: true}, release(t, c, fenced, p))
				requireFree(t, s, lock)
				sub.requireAnnounced(t)
				_, _, _, err := fenced.Acquire(t.Context(), c, older, waiterLease,
					fenced.Registration(older, waiterLease))
				var refusal *lua.Error
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, lua.ClassPermanent, refusal.Class)
				require.Contains(t, refusal.Advice, counter)
				requireFree(t, s, lock)
			})
		}
	}
}
