package status

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextNamesFlagsInsteadOfFields(t *testing.T) {
	require.Equal(t, "renewal takes longer than a third of --lease",
		Text("holdfast: renewal takes longer than a third of Options.WatchdogLease"))
	require.Equal(t, "see --tls", Text("see rueidis.ClientOption.TLSConfig"))
}

func TestNoFieldOfRueidisIsLeftInATextOfTheLibrary(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/messages.md")
	require.NoError(t, err)
	library, _, found := strings.Cut(string(page), "\n## The program\n")
	require.True(t, found)
	library = regexp.MustCompile(`\s+`).ReplaceAllString(library, " ")
	require.Contains(t, library, "rueidis.ClientOption.")
	require.NotContains(t, Text(library), "rueidis.ClientOption.")
}
