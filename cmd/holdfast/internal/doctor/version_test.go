package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/servers"
)

func TestServersThatAreTestedAreKnown(t *testing.T) {
	t.Parallel()
	for _, server := range servers.All() {
		version := server.Version
		if !strings.Contains(version, ".") {
			version += ".0"
		}
		said := map[string]string{"redis_version": version}
		if server.Make == "Valkey" {
			said = map[string]string{"redis_version": "7.2.4", "valkey_version": version}
		}
		require.Equal(t, ok("%s %s", server.Make, version), judgeVersion(said))
	}
	_, newest := servers.Tested("Redis")
	newest.Major++
	found := judgeVersion(map[string]string{"redis_version": newest.String()})
	require.Equal(t, Warning, found.State)
	require.Contains(t, found.Text, servers.Range("Redis"))
}
