//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// runbook returns the commands of docs/runbooks.md, by section and in order.
func runbook(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbooks.md")
	require.NoError(t, err)
	commands := map[string][]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		for i, block := range strings.Split(section, "```") {
			if lines, isShell := strings.CutPrefix(block, "sh\n"); isShell && i%2 == 1 {
				commands[heading] = append(commands[heading], strings.Split(strings.TrimSpace(lines), "\n")...)
			}
		}
	}
	return commands
}

// The commands of the runbook free a lock whose holder hangs, and the next waiter gets it.
func TestRunbookFreesAStuckLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	// The lease is short, because the former holder is told at its next renewal.
	hangs := startRun(t, redis.Addr(), append([]string{"--lease", "9s", "orders:42"},
		shell("echo works >&3; exec sleep 1000")...)...)
	hangs.line(t, "works")
	waits := startRun(t, redis.Addr(), append([]string{"orders:42"}, shell("echo mine >&3")...)...)

	// The lock as "holdfast inspect" has it.
	var lock struct {
		Holders []struct{ Owner string }
		Waiters []struct{ Owner string }
	}
	require.Eventually(t, func() bool {
		o := run(t, "inspect", "--json", "--redis", redis.Addr(), "orders:42")
		require.Zero(t, o.status, o.stderr)
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &lock))
		return len(lock.Waiters) == 1
	}, longest, 10*time.Millisecond)

	bin := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(bin, "holdfast")))
	book := runbook(t)
	commands := book["A lock is stuck"]
	require.Len(t, commands, 6)
	frees := commands[4:]
	if _, missing := exec.LookPath("jq"); missing != nil {
		frees = frees[1:]
	}
	sh := func(command string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"),
			"REDIS_URL=redis://"+redis.Addr(), "OWNER="+lock.Holders[0].Owner)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	var output []string
	for _, command := range append(commands[:4:4], strings.Join(frees, "\n")) {
		waits.lives(t)
		out, err := sh(command)
		if !strings.HasPrefix(command, "holdfast doctor") { // its status is what it thinks of Redis
			require.NoError(t, err, "%s\n%s", command, out)
		}
		output = append(output, out)
	}
	require.Contains(t, output[0], "orders:42")           // ls
	require.Contains(t, output[1], "eviction")            // doctor
	require.Contains(t, output[2], lock.Holders[0].Owner) // inspect
	require.NotContains(t, output[3], "orders:42")        // ls --cycles
	require.Contains(t, output[4], "released orders:42")  // unlock
	waits.line(t, "mine")
	require.Zero(t, waits.status(t))
	require.Equal(t, 76, hangs.status(t), "the former holder is told, and ended")

	delete(book, "A lock is stuck")
	require.NotEmpty(t, book)
	for _, commands := range book {
		for _, command := range commands {
			out, _ := sh(command)
			require.True(t, strings.HasPrefix(out, "holdfast: top needs a terminal") ||
				!strings.Contains(out, "--help"), "%s\n%s", command, out)
		}
	}
}
