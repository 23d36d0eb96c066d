package connect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAddressWithoutAPortHasTheUsualOne(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"localhost": "localhost:6379", "10.0.0.7": "10.0.0.7:6379", "::1": "[::1]:6379",
		"[fe80::1]": "[fe80::1]:6379", "redis:7": "redis:7", "[::1]:7": "[::1]:7",
	} {
		all, err := Flags{Redis: []string{given}}.Options()
		require.NoError(t, err, given)
		require.Equal(t, []string{want}, all[0].InitAddress)
	}
	all, err := Flags{Redis: []string{"a", "b:1"}, Sentinel: "main"}.Options()
	require.NoError(t, err)
	require.Equal(t, []string{"a:26379", "b:1"}, all[0].InitAddress)
}
