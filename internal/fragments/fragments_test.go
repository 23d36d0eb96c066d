package fragments_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
)

// files makes a directory; each pair is a name and its text.
func files(pairs ...string) fstest.MapFS {
	dir := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		dir[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return dir
}

func TestFragmentsStandWhereTheyAreNeededAfterTheirOwn(t *testing.T) {
	scripts := fragments.Read(files(
		"one.lua", "-- One\n\nfirst()\n-- Needs c, a\nlast()\n",
		"two.lua", "two()\n",
		"common/a.lua", "-- Needs b\na()\n",
		"common/b.lua", "b()\n",
		"common/c.lua", "-- About c.\n-- Needs b\n\nc()\n",
	))
	require.Equal(t, map[string]string{
		"one.lua": "-- One\n\nfirst()\nb()\n-- About c.\n\nc()\na()\nlast()\n",
		"two.lua": "two()\n",
	}, scripts)
}

func TestFragmentIsIncludedOncePerScope(t *testing.T) {
	scripts := fragments.Read(files(
		"one.lua", "-- Needs a\nif x then\n  -- Needs b\n  y()\n\n  -- Needs b, a\n  z()\n"+
			"else\n  -- Needs b\nend\n-- Needs b\n",
		"common/a.lua", "a()\n",
		"common/b.lua", "-- Needs a\nb()\n",
	))
	require.Equal(t, "a()\nif x then\nb()\n  y()\n\n  z()\nelse\nb()\nend\nb()\n",
		scripts["one.lua"])
}

func TestUnknownFragmentPanicsAndNamesWhatNeedsIt(t *testing.T) {
	const want = "script one.lua -> a -> b: open common/b.lua: file does not exist"
	require.PanicsWithValue(t, want, func() {
		fragments.Read(files("one.lua", "-- Needs a\n", "common/a.lua", "-- Needs b\n"))
	})
}
