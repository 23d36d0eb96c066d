//go:build redis

package luashim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// complaints keeps the errors of a test that is expected to fail.
type complaints struct {
	testing.TB
	errors []string
}

func (c *complaints) Errorf(format string, _ ...any) { c.errors = append(c.errors, format) }

func TestUndeclaredKeyWhoseErrorIsIgnoredFailsTheTest(t *testing.T) {
	fails := &complaints{}
	t.Run("server", func(t *testing.T) {
		fails.TB = t
		s := redistest.Start(fails, redistest.WithScripts(luashim.Declared))
		c := s.Client(t)
		got, err := c.Do(t.Context(), c.B().Eval().Script("return redis.pcall('GET', 'x').err").
			Numkeys(0).Build()).ToString()
		require.NoError(t, err)
		require.Contains(t, got, luashim.Undeclared+": GET x")
	})
	require.Len(t, fails.errors, 1)
}

// These are the slots of Redis.
func TestKeysOfDifferentSlotsAreRefused(t *testing.T) {
	c := redistest.Start(t, redistest.WithScripts(luashim.Sharded)).Client(t)
	for keys, refused := range map[[2]string]bool{
		{"{a}1", "x{a}2"}: false, {"foo{bar}zap", "bar"}: false, {"{}a", "{}a"}: false,
		{"a", "b"}: true, {"{}a", "{}b"}: true,
	} {
		err := c.Do(t.Context(), c.B().Eval().Script("return 1").Numkeys(2).
			Key(keys[:]...).Build()).Error()
		if refused {
			require.ErrorContains(t, err, "CROSSSLOT ", keys)
		} else {
			require.NoError(t, err, keys)
		}
	}
}
