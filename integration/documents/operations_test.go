package documents_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/watchdog"
)

// operations has the pages for those who run a service.
var operations = []string{"configuration.md", "monitoring.md", "runbooks.md", "guarantees.md",
	"handover.md"}

func page(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	return string(content)
}

// Links to a section of these pages, from any document, lead to one of their headings.
func TestLinksToSectionsOfOperationsLeadSomewhere(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	sections := map[string]bool{}
	for _, name := range operations {
		for _, found := range heading.FindAllStringSubmatch(page(t, name), -1) {
			sections[name+"#"+strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")] = true
		}
	}
	link := regexp.MustCompile(`\]\((?:docs/)?([a-z]+\.md)?(#[^)]*)\)`)
	for _, document := range documents(t) {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			name := found[1]
			if name == "" {
				name = filepath.Base(document)
			}
			require.True(t, sections[name+found[2]] || !slices.Contains(operations, name),
				"%s: %s", document, found[0])
		}
	}
}

func TestOperationsStateWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Second+2*time.Millisecond, watchdog.Drift(100*time.Second))
	require.Contains(t, page(t, "guarantees.md"), "a margin of 1 % + 2 ms")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[redlock.Options]()) {
		require.Contains(t, page(t, "configuration.md"), "\n| `"+field.Name+"` | ")
	}
}
