package demo

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown returns the locks of the scenes that fit on a screen of this height.
func shown(l *live) (locks []string) {
	for _, s := range l.onScreen() {
		locks = append(locks, s.lock)
	}
	return locks
}

func TestScreenShowsAllScenesThatFit(t *testing.T) {
	all := scenes(false)
	// the result, a prompt, and a word
	full := len(newLive(new(bytes.Buffer), "", all, 80, 99, false).picture(all)) + 3
	require.Len(t, shown(newLive(new(bytes.Buffer), "", all, 80, full, false)), len(all))
	require.Less(t, len(shown(newLive(new(bytes.Buffer), "", all, 80, full-1, false))), len(all))
}

func TestLowScreenShowsTheActiveScenes(t *testing.T) {
	const height = 24
	all := scenes(false)
	l := newLive(new(bytes.Buffer), "", all, 80, height, false)
	require.Equal(t, []string{"queue", "readwrite"}, shown(l))
	over := func(lock string) {
		for _, s := range all {
			for _, p := range s.cast {
				if s.lock == lock {
					l.show(event{Kind: ended, Lock: lock, Process: p.Process})
				}
			}
		}
		require.LessOrEqual(t, len(l.picture(l.onScreen()))+2, height)
	}
	over("readwrite")
	require.Equal(t, []string{"counter", "queue", "transfer"}, shown(l))
	over("transfer")
	require.Equal(t, []string{"counter", "queue", "watchdog"}, shown(l))
	for _, s := range all {
		over(s.lock)
	}
	require.NotEmpty(t, shown(l))
}

func TestScenesThatDidNotFitAreDrawnAtTheEnd(t *testing.T) {
	var out bytes.Buffer
	l := newLive(&out, "", scenes(false), 80, minHeight(scenes(false)), false)
	l.tick(0)
	require.NotContains(t, out.String(), "takeover")
	require.Contains(t, out.String(), "7 more when there is room")
	out.Reset()
	l.close()
	require.Contains(t, out.String(), "takeover")
	require.NotContains(t, out.String(), " more when ")
}
