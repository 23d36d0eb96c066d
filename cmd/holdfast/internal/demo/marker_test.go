package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessesNoticeEachOtherInside(t *testing.T) {
	_, client := startedEmbedded(t)
	for name, c := range map[string]struct {
		first, second string // types of locks
		entrance      string // the process that the second finds when it enters
		exit          string // the process that the first finds when it leaves
	}{
		"two who are alone":      {"", "", "first", "second"},
		"two readers":            {reading, reading, "", "first"},
		"a reader at a writer's": {writing, reading, "first", "second"},
		"a writer among readers": {reading, writing, "first", "second"},
	} {
		t.Run(name, func(t *testing.T) {
			first := worker{redis: client,
				part: part{Process: "first", Lock: "l", Prefix: name, Type: c.first}}
			second := worker{redis: client,
				part: part{Process: "second", Lock: "l", Prefix: name, Type: c.second}}
			found, err := first.enter(t.Context())
			require.NoError(t, err)
			require.Empty(t, found)
			found, err = second.enter(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.entrance, found)
			found, err = first.exit(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.exit, found)
		})
	}
}

func TestNoMarkerIsLeftByProcessesThatLeft(t *testing.T) {
	_, client := startedEmbedded(t)
	for _, lockType := range []string{"", reading, writing} {
		w := worker{redis: client,
			part: part{Process: "a", Lock: "l", Prefix: "p:", Type: lockType}}
		found, err := w.enter(t.Context())
		require.NoError(t, err)
		require.Empty(t, found)
		found, err = w.exit(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", found)
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Empty(t, keys)
	}
}
