//go:build interop

package redisson_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// kindsOfRun has the kinds of "holdfast run", by those of the targets.
var kindsOfRun = map[string]string{
	reentrant: "lock", fair: "fair", fenced: "fenced", read: "read", write: "write",
}

// commandRun is a "holdfast run" whose command says that it runs, and ends with its input.
type commandRun struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *bufio.Reader
}

// startRun starts the program beside Redisson.
func startRun(t *testing.T, file string, s *site, l target, flags ...string) *commandRun {
	t.Helper()
	args := append([]string{"run", "--redis", s.nodes[0].Addr(), "--kind", kindsOfRun[l.kind]},
		flags...)
	p := &commandRun{cmd: exec.Command(file, append(args, l.name(), "--", "sh", "-c",
		`echo "token ${HOLDFAST_TOKEN-none}"; read x; exit 7`)...)}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdin, p.stdin, p.cmd.Stderr = read, write, os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(t, p.cmd.Start())
	require.NoError(t, read.Close())
	t.Cleanup(func() {
		_ = p.stdin.Close()
		_ = p.cmd.Process.Kill() // mostly it has ended
		_ = p.cmd.Wait()
	})
	return p
}

// status ends the command, and returns the exit status.
func (p *commandRun) status(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	_ = p.cmd.Wait() // the status is looked at
	return p.cmd.ProcessState.ExitCode()
}

// runs waits until the command runs.
func (p *commandRun) runs(t *testing.T) string {
	t.Helper()
	line := make(chan string, 1)
	go func() {
		text, _ := p.stdout.ReadString('\n')
		line <- text
	}()
	text := locktest.Receive(t, line, "the command does not run")
	require.NotEmpty(t, text, "the command has not run")
	return text
}

func TestTheProgramRunsCommandsUnderLocksOfRedisson(t *testing.T) {
	t.Parallel()
	file := buildProgram(t)
	s := newSingle(t, startPeer(t))
	java := newJavaActor(t, s)
	for _, c := range contests {
		l := c.make()
		if kindsOfRun[l.hold.kind] == "" || kindsOfRun[l.want.kind] == "" {
			continue
		}

		acquire(t, java, l.hold, rlock.Watchdog)
		refused := startRun(t, file, s, l.want, "--nonblock")
		require.Equal(t, 75, refused.status(t), c.name)
		waits := startRun(t, file, s, l.want)
		s.waitForWaiters(t, l.want, 1)
		unlock(t, java, l.hold)
		token := waits.runs(t)
		if l.want.kind == fenced {
			require.NotEqual(t, "token none\n", token)
		}
		require.Equal(t, 7, waits.status(t), c.name)

		holds := startRun(t, file, s, l.hold)
		holds.runs(t)
		require.ErrorIs(t, java.tryLock(l.want, 0, longLease), errRefused, c.name)
		waiting := waitInBackground(java, l.want)
		s.waitForWaiters(t, l.want, 1)
		require.Equal(t, 7, holds.status(t), c.name)
		acquired(t, waiting)
		unlock(t, java, l.want)
		s.requireFree(t, l.want)
	}
}
