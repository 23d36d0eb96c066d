package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessesNoticeEachOtherInside(t *testing.T) {
	_, client := startedEmbedded(t)
	for name, c := range map[string]struct {
		first, second string   // types of locks
		notice        []string // what the second finds when it enters
	}{
		"two who are alone":      {"", "", []string{"first"}},
		"two readers":            {reading, reading, nil},
		"a reader at a writer's": {writing, reading, []string{"first"}},
		"a writer among readers": {reading, writing, []string{"first"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := worker{redis: client,
				part: part{Process: "first", Lock: "l", Data: name, Type: c.first}}
			second := worker{redis: client,
				part: part{Process: "second", Lock: "l", Data: name, Type: c.second}}
			found, err := first.mark(t.Context(), true)
			require.NoError(t, err)
			require.Empty(t, found)
			found, err = second.mark(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, c.notice, found)
			found, err = first.mark(t.Context(), false)
			require.NoError(t, err)
			require.Len(t, found, len(c.notice))
			found, err = second.mark(t.Context(), false)
			require.NoError(t, err)
			require.Empty(t, found, "the first has left")
			left, err := client.Do(t.Context(), client.B().Exists().Key(name).Build()).AsInt64()
			require.NoError(t, err)
			require.Zero(t, left, "no marker is left")
		})
	}
}
