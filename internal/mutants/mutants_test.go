package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package p

func f(a, b int) {
	if a < b {
		g()
	}
	g()
}

`

// candidate returns a mutant of source, of the kind and with the original lines.
func candidate(t *testing.T, kind, with, text string, occurrence int) *mutant {
	t.Helper()
	start := -1
	for range occurrence {
		next := strings.Index(source[start+1:], text)
		require.GreaterOrEqual(t, next, 0)
		start += 1 + next
	}
	m := change("p/p.go", source, kind, start, start+len(text), with)
	require.NotNil(t, m)
	return m
}

func TestMutantIsAppliedAndRestored(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "p", "p.go")
	m := candidate(t, "comparison", "<=", "<", 1)
	restore, err := m.apply(root)
	require.NoError(t, err)
	require.Nil(t, restore, "the file is gone")

	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	restore, err = m.apply(root)
	require.NoError(t, err)
	changed, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(source, "\tif a < b {", "if a <= b {", 1), string(changed))

	require.NoError(t, restore())
	restored, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, source, string(restored))
}

// Whoever changes one of these lines need not care about the sample, so this does not require that
// all mutants are found.
func TestSampleIsReadable(t *testing.T) {
	sample, err := readSample("sample.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(sample), 250)
	inLua := 0
	for i, m := range sample {
		require.Equal(t, i+1, m.number)
		require.Contains(t, library, m.pkg())
		require.Contains(t, kinds, m.kind)
		require.NotEqual(t, m.original, m.mutated)
		if m.isLua() {
			inLua++
		}
	}
	require.GreaterOrEqual(t, inLua, 60)
}
