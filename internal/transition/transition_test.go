package transition_test

import (
	"bytes"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/internal/transition"
)

type light int

func TestImpossibleTransitionIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		for range 3 {
			transition.Missing(light(2), "breaks")
		}
		synctest.Wait() // it is logged in the background, because callers may hold a mutex
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "level=ERROR")
		require.Contains(t, log.String(), "transition_test.light: no breaks in state 2")
	})
}

// It would define flags in the programs of users.
func TestPackageTestingIsNotLinkedIntoPrograms(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "holdfast/rlock", "holdfast/multilock",
		"holdfast/redlock").Output()
	require.NoError(t, err)
	require.NotContains(t, strings.Fields(string(out)), "testing")
}
