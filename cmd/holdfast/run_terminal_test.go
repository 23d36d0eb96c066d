//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/terminal"
	"holdfast/internal/redistest"
)

// sitting is somebody at a terminal.
type sitting struct {
	*terminal.Terminal
	ctx context.Context
}

// sit starts a command on a terminal. "holdfast" is in its PATH.
func sit(t *testing.T, redis *redistest.Server, args ...string) sitting {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(bin, "holdfast")))
	ctx, cancel := context.WithTimeout(t.Context(), 2*longest)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PS1=$ ", "HISTFILE=",
		"REDIS_URL=redis://"+redis.Addr())
	term, err := terminal.Start(cmd, 100, 30)
	require.NoError(t, err)
	t.Cleanup(term.Stop)
	return sitting{term, ctx}
}

// bash starts a shell with job control.
func bash(t *testing.T, redis *redistest.Server) sitting {
	t.Helper()
	s := sit(t, redis, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees(t, `\$ $`)
	return s
}

func (s sitting) types(t *testing.T, keys string) {
	t.Helper()
	require.NoError(t, s.Send(keys))
}

// sees waits until the screen matches a pattern.
func (s sitting) sees(t *testing.T, pattern string) {
	t.Helper()
	is := regexp.MustCompile(pattern)
	require.NoError(t, s.WaitFor(s.ctx, pattern, func(screen string) bool {
		return is.MatchString(strings.TrimSuffix(screen, "\n") + trailingBlank(screen))
	}))
}

// trailingBlank returns the blank after a prompt, which the screen leaves out.
func trailingBlank(screen string) string {
	if strings.HasSuffix(screen, "$\n") {
		return " "
	}
	return ""
}

// A SIGINT is lost to a shell that is about to execute a command. So commands that get one have
// started all others before, and then read or wait.
func TestCtrlCAndCtrlBackslashGoToTheCommandOfRun(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for key, want := range map[string]int{"\x03": 130, "\x1c": 131} {
		s := sit(t, redis, binary, "run", "job", "--", "sh", "-c", `echo in; read x`)
		s.sees(t, "in")
		s.types(t, key)
		status, err := s.Wait(s.ctx)
		require.NoError(t, err)
		require.Equal(t, want, status)
		requireFree(t, redis)
	}
	// A command that handles Ctrl-C goes on: run does not end it.
	s := sit(t, redis, binary, "run", "job", "--", "sh", "-c",
		`trap 'echo caught' INT; echo in; read x; read x; exit 4`)
	s.sees(t, "in")
	s.types(t, "\x03")
	s.sees(t, "caught")
	s.types(t, "\r\r")
	status, err := s.Wait(s.ctx)
	require.NoError(t, err)
	require.Equal(t, 4, status)
}

func TestCtrlZStopsRunWithItsCommandAndFgContinuesBoth(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := bash(t, redis)
	for _, round := range []string{"first", "second"} { // the shell is usable afterwards
		s.types(t, "clear; holdfast run job -- sh -c 'echo "+round+
			`; read x; echo "got $x"; exit 5'`+"\r")
		s.sees(t, `(?m)^`+round+`$`)
		s.types(t, "\x1a")
		s.sees(t, `Stopped`)
		s.sees(t, `\$ $`)
		require.EqualValues(t, 1, redis.DoInt(t, "EXISTS", "job"))
		s.types(t, "fg\r")
		s.sees(t, `(?m)^holdfast run`)
		s.types(t, "text\r")
		s.sees(t, `(?m)^got text$`)
		s.types(t, "echo status $?\r")
		s.sees(t, `(?m)status 5$`)
		require.Zero(t, redis.DoInt(t, "EXISTS", "job"), round)
	}
}

func TestTheTerminalComesBackAsItWasFromACommandThatIsKilled(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := bash(t, redis)
	s.types(t, "clear; cd $(mktemp -d); stty -a > before; "+
		"holdfast run job -- sh -c 'stty raw -echo; kill -9 $$'; "+
		"stty -a > after; cmp before after && rm before after && echo 'as it' was\r")
	s.sees(t, `(?m)^as it was`)
}

func TestRunOnATerminalRedrawsItsLineWhileItWaits(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	holder := startRun(t, redis.Addr(), forEver()...)
	holder.line(t, "in")
	s := sit(t, redis, binary, "run", "job", "--", "sh", "-c", "echo mine; read x")
	seconds := make(map[string]bool)
	line := regexp.MustCompile(`lock "job": waiting for (\d+s): held by `)
	require.NoError(t, s.WaitFor(s.ctx, "two different seconds", func(screen string) bool {
		if match := line.FindStringSubmatch(screen); match != nil {
			seconds[match[1]] = true
		}
		return len(seconds) == 2
	}))
	require.Equal(t, 1, strings.Count(s.Screen(), "waiting for"), s.Screen())
	holder.signal(t, unix.SIGTERM)
	s.sees(t, `\Aholdfast: lock "job": acquired after .*s\nmine\n?\z`)
	s.types(t, "\r")
	status, err := s.Wait(s.ctx)
	require.NoError(t, err)
	require.Zero(t, status)
}
