package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/lua"
)

func TestHashThatIsNoLockIsRefused(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lock, "colour", "green")
	_, err := lua.Inspect(t.Context(), c, lock)
	e := requireError(t, err, rediserr.ClassPermanent, "")
	require.Contains(t, e.Message, `"colour"`)
	require.Contains(t, e.Message, `"order:42"`)
}
