package rlock

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// endedPart calls a function when the acquisition ends.
type endedPart func()

func (p endedPart) Ended(error) { p() }
func (p endedPart) Renewed()    {}

// An owner that re-enters while the last level is released starts afresh when it is told of the
// release. It must not use the name in Redis that is being released.
func TestReleasedAcquisitionIsNotInItsSessionAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(
			func() (lua.Released, error) { return lua.Released{Held: true}, nil })
		defer m.close()
		var name string
		seen := false
		m.a.part = endedPart(func() {
			seen = true
			m.a.session.Do(func(ow *owned) { name = ow.holder() })
		})
		require.NoError(t, m.holds[0].Unlock(t.Context()))
		require.True(t, seen)
		require.Empty(t, name)
	})
}

// The last level is removed before the acquisition ends.
func TestNoLevelIsAddedWhileTheLastOneIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(
			func() (lua.Released, error) { return lua.Released{Held: true}, nil })
		defer m.close()
		require.True(t, m.holds[0].level.beginRelease())
		require.Zero(t, m.a.remove(m.holds[0].level))
		_, err := m.a.push(t.Context(), m.a.Deadline(), false)
		require.ErrorIs(t, err, ErrReleased)
		require.Nil(t, held(m.a.session, m.a.lock.mode))
		m.a.Drop()
	})
}
