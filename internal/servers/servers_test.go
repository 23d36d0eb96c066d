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
	document   = "../../docs/servers.md"
	tableBegin = "<!-- servers: written by TestDocumentsNameTheServersOfTheList -->\n"
	tableEnd   = "<!-- end of servers -->\n"
)

// suites are the suites of Debian by number.
var suites = map[string]string{"bookworm": "Debian 12", "trixie": "Debian 13"}

// leftOut says what parts of run.sh do without.
var leftOut = map[string]string{
	"all":           "",
	"basics":        "how locks behave, and RESP2",
	"resp2,managed": "all but RESP2: `make test` runs all other tests here",
}

func TestDocumentsNameTheServersOfTheList(t *testing.T) {
	t.Parallel()
	doctable.Require(t, document, tableBegin, tableEnd, table(t), "go test ./internal/servers")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme),
		fmt.Sprintf("Redis %s, Valkey %s.", Range("Redis"), Range("Valkey")))
}

// table returns what the document says of the servers.
func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| server | from | what `make compat` leaves out |\n|---|---|---|\n")
	images := map[string][]string{}
	var managed Server
	for _, s := range All() {
		if s.Image() {
			images[s.Make] = append(images[s.Make], s.Version)
			continue
		}
		less, known := leftOut[s.Parts]
		require.True(t, known, "%s: parts %q: say in leftOut what they leave out", s.Name, s.Parts)
		if !s.TLS {
			less = strings.TrimSuffix("TLS, "+less, ", ")
		}
		fmt.Fprintf(&b, "| %s %s | %s | %s |\n", s.Make, s.Version, origin(t, s), less)
		if strings.Contains(s.Parts, "managed") {
			managed = s
		}
	}
	fmt.Fprintf(&b, "| a managed service | %s %s | TLS, Sentinel and replicas, multilocks, "+
		"and some of how locks behave |\n\n", managed.Make, managed.Version)
	fmt.Fprintf(&b, "GitHub's jobs also run all of that, TLS included, with the official images of "+
		"Redis %s and of Valkey %s,\nwhatever their latest patches are.\n",
		sequence(images["Redis"]), sequence(images["Valkey"]))
	return b.String()
}

// origin says where a server comes from.
func origin(t *testing.T, s Server) string {
	t.Helper()
	if s.How[0] == "from_debian" {
		suite, known := suites[s.How[1]]
		require.True(t, known, "%s: no number is known of Debian's %s", s.Name, s.How[1])
		return suite
	}
	require.Equal(t, "from_wheel", s.How[0], s.Name)
	distribution, _, _ := strings.Cut(s.How[1], "==")
	return "PyPI `" + distribution + "`"
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
