// Package doctable keeps what a test writes in a document true, and reads what a test checks.
package doctable

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Require asserts that between the lines begin and end a document has want. With HOLDFAST_UPDATE in
// the environment it writes that there instead; command, which runs the test, is the advice of a
// failure.
func Require(tb testing.TB, file, begin, end, want, command string) {
	tb.Helper()
	document, err := os.ReadFile(file)
	require.NoError(tb, err)
	head, rest, found := strings.Cut(string(document), begin)
	require.True(tb, found, "%s has no line %q", file, begin)
	written, tail, found := strings.Cut(rest, end)
	require.True(tb, found, "%s has no line %q", file, end)
	if os.Getenv("HOLDFAST_UPDATE") != "" {
		updated := head + begin + want + end + tail
		require.NoError(tb, os.WriteFile(file, []byte(updated), 0o600))
		return
	}
	require.Equal(tb, want, written, "HOLDFAST_UPDATE=1 %s updates %s", command, file)
}

// Rules returns the rules of the first ACL SETUSER under a heading of docs/permissions.md, line by
// line. root is the path to the root of the repository.
func Rules(tb testing.TB, root, heading string) (lines [][]string) {
	tb.Helper()
	document, err := os.ReadFile(root + "/docs/permissions.md")
	require.NoError(tb, err)
	_, section, found := strings.Cut(string(document), "\n## "+heading+"\n")
	require.True(tb, found, heading)
	_, block, found := strings.Cut(section, "redis-cli ACL SETUSER ")
	require.True(tb, found, heading)
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		line = strings.NewReplacer("'", " ", "\\", " ").Replace(line)
		if rules := regexp.MustCompile(`(^| )[+~&][^ \n]*`).FindAllString(line, -1); rules != nil {
			lines = append(lines, strings.Fields(strings.Join(rules, " ")))
		}
	}
	return lines
}
