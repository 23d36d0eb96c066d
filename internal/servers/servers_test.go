package servers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
)

const (
	document = "../../docs/servers.md"
	begin    = "<!-- servers: written by TestDocumentsNameTheServersOfTheList -->\n"
	end      = "<!-- end of servers -->\n"
)

func TestDocumentsNameTheServersOfTheList(t *testing.T) {
	t.Parallel()
	doctable.Require(t, document, begin, end, tested(), "go test ./internal/servers")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme),
		fmt.Sprintf("Redis %s, Valkey %s.", Range("Redis"), Range("Valkey")))
}

// tested returns what the document says of the servers.
func tested() string {
	own, images := map[string][]string{}, map[string][]string{}
	for _, s := range All() {
		of := own
		if s.Image() {
			of = images
		}
		of[s.Make] = append(of[s.Make], s.Version)
	}
	return fmt.Sprintf("holdfast is tested with Redis %s, and with Valkey %s.\n"+
		"GitHub's jobs also test the latest patches of the official images, with TLS:\n"+
		"Redis %s, and Valkey %s.\n",
		sequence(own["Redis"]), sequence(own["Valkey"]), sequence(images["Redis"]),
		sequence(images["Valkey"]))
}

// sequence joins words as a sentence does.
func sequence(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func TestJobsOfGitHubRunTheImagesOfTheList(t *testing.T) {
	t.Parallel()
	jobs, err := os.ReadFile("../../.github/workflows/ci.yml")
	require.NoError(t, err)
	_, matrix, found := strings.Cut(string(jobs), "        image:\n")
	require.True(t, found)
	matrix, _, _ = strings.Cut(matrix, "    steps:")
	var run, listed []string
	for _, line := range regexp.MustCompile(`- (\S+)`).FindAllStringSubmatch(matrix, -1) {
		run = append(run, line[1])
	}
	for _, s := range All() {
		if s.Image() {
			listed = append(listed, s.Name)
		}
	}
	require.Equal(t, listed, run)
}
