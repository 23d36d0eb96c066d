package redistest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// CommandStats returns how often each command was called since the start or the last
// [Server.ResetStats], by its name in lower case, subcommands as "config|resetstat". It is INFO
// commandstats, which also counts the commands that scripts call, and redistest's own (info,
// config|resetstat, auth).
func (s *Server) CommandStats(tb testing.TB) map[string]int {
	tb.Helper()
	calls := map[string]int{}
	for line := range strings.Lines(s.DoString(tb, "INFO", "commandstats")) {
		// cmdstat_set:calls=2,usec=7,usec_per_call=3.50,…
		name, fields, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !found {
			continue
		}
		count, _, _ := strings.Cut(fields, ",")
		n, err := strconv.Atoi(count)
		require.NoError(tb, err, line)
		calls[name] = n
	}
	return calls
}

// ResetStats resets the counts of [Server.CommandStats].
func (s *Server) ResetStats(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "CONFIG", "RESETSTAT")
}
