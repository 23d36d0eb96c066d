package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are the files that porting.md quotes: they are compiled, and run by tests.
var sources = []string{
	"idioms_test.go", "../../examples/shop/*.go", "../../examples/leader/*.go",
	"../../examples/gocron/*.go",
}

// squeeze makes texts comparable that differ in white space only.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestCodeOfPortingIsCompiled(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range sources {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			code.Write(content)
		}
	}
	compiled := squeeze(code.String())

	quoted := snippets(t)
	require.Greater(t, len(quoted), 40, "the document is not read properly")
	for _, snippet := range quoted {
		if !strings.Contains(compiled, squeeze(snippet)) {
			t.Errorf("porting.md quotes what no test compiles:\n%s", snippet)
		}
	}
}

// snippets returns the Go code of porting.md: its blocks, and what is code in the middle column of
// the first table.
func snippets(t *testing.T) []string {
	content, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	text := string(content)
	require.Less(t, strings.Count(text, "\n"), 200, "a page that is read, not a book")
	var found []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, block[1])
	}
	_, table, ok := strings.Cut(text, "\n| Java | Go | note |\n|---|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		columns := strings.Split(row, " | ")
		require.Len(t, columns, 3, row)
		code := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[1], -1)
		require.NotEmpty(t, code, row)
		for _, span := range code {
			found = append(found, span[1])
		}
	}
	return found
}

func TestLinksOfPortingLeadSomewhere(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	anchors := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(content, -1) {
		name := strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(string(heading[1])))
		anchors[name] = true
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllSubmatch(content, -1) {
		to := string(link[1])
		if anchor, is := strings.CutPrefix(to, "#"); is {
			require.True(t, anchors[anchor], to)
			continue
		}
		_, err := os.Stat(filepath.Join("../../docs", to))
		require.NoError(t, err)
	}
}
