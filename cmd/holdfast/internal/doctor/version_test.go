package doctor

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/servers.md says what was tested.
func TestServersThatAreTestedAreKnown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/servers.md")
	require.NoError(t, err)
	tested := regexp.MustCompile(`(?m)^\| (Redis|Valkey) (\d+\.\d+)`).
		FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(tested), 4)
	for _, row := range tested {
		said := map[string]string{"redis_version": "7.2.4"}
		field := map[string]string{"Redis": "redis_version", "Valkey": "valkey_version"}[row[1]]
		said[field] = row[2] + ".0"
		require.Equal(t, OK, judgeVersion(said).State, row[0])
	}
}
