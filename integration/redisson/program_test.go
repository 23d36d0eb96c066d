//go:build interop

package redisson_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
)

// program is the path of the program holdfast, for [holdfast].
var program string

// buildProgram builds the program for as long as the test lasts, and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../cmd/holdfast" // a module of its own
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// holdfast runs the program against a site, and returns what it prints.
func holdfast(t *testing.T, s *site, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), program, append(args, "--redis", s.addresses()[0])...)
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, stderr.String())
	return string(output)
}

// The program shows locks of both sides, and frees them as their holder would.
func programShowsAndFreesLocks(t *testing.T, s *site) {
	for _, c := range contests {
		if strings.Contains(c.name, multi) {
			continue // its parts are plain locks
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, sides := range [][2]side{{javaSide, javaSide}, {javaSide, goSide}, {goSide, javaSide}} {
				for _, force := range []bool{true, false} {
					c, holder := c.make(), sides[0].newActor(t, s)
					acquire(t, holder, c.hold, longLease)
					waiting := waitInBackground(sides[1].newActor(t, s), c.want)
					s.waitForWaiters(t, c.want, 1)
					s.letSleep(t, c.want)
					name, owner := c.hold.name(), ""
					for field := range s.hgetall(t, c.hold.name()) {
						if field != "mode" {
							owner = strings.TrimSuffix(field, ":write")
						}
					}

					require.Contains(t, holdfast(t, s, "ls", name), "\n"+name+" ")
					shown := holdfast(t, s, "inspect", name)
					require.Contains(t, shown, "\nholder     "+owner+" ")
					if c.hold.kind == fair {
						require.Contains(t, shown, "\nwaiter     1. ")
					}
					require.NotContains(t, shown, "\nlisteners  0")

					whose := "--owner=" + owner
					if force {
						whose = "--force"
					}
					start := time.Now()
					require.Contains(t, holdfast(t, s, "unlock", name, whose, "--yes"), "released "+name)
					require.Less(t, acquired(t, waiting).Sub(start), told)
					require.ErrorIs(t, holder.unlock(c.hold), errNotHolder)
					locktest.Eventually(t, func() bool { return s.hgetall(t, name)[owner] == "" },
						"the holder still has it")
				}
			}
		})
	}
}
