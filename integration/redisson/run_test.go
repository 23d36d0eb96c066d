//go:build interop

package redisson_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// kindsOfRun has the kinds of "holdfast run", by those of the targets.
var kindsOfRun = map[string]string{
	reentrant: "lock", fair: "fair", fenced: "fenced", read: "read", write: "write",
}

// program is a "holdfast run" whose command says that it runs, and ends with its input.
type program struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *bufio.Reader
}

// startProgram starts the program beside Redisson.
func startProgram(t *testing.T, file string, s *site, l target, flags ...string) *program {
	t.Helper()
	args := append([]string{"run", "--redis", s.nodes[0].Addr(), "--kind", kindsOfRun[l.kind]},
		flags...)
	p := &program{cmd: exec.Command(file, append(args, l.name(), "--", "sh", "-c",
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
func (p *program) status(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	_ = p.cmd.Wait() // the status is looked at
	return p.cmd.ProcessState.ExitCode()
}

// runs waits until the command runs.
func (p *program) runs(t *testing.T) string {
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
	file := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-o", file, "holdfast/cmd/holdfast")
	build.Stderr = os.Stderr
	require.NoError(t, build.Run())
	s := newSingle(t, startPeer(t))
	java := newJavaActor(t, s)
	for _, c := range contests[:6] { // of one name
		l := c.make()

		acquire(t, java, l.hold, rlock.Watchdog)
		refused := startProgram(t, file, s, l.want, "--nonblock")
		require.Equal(t, 75, refused.status(t), c.name)
		waits := startProgram(t, file, s, l.want)
		s.waitForWaiters(t, l.want, 1)
		unlock(t, java, l.hold)
		token := waits.runs(t)
		if l.want.kind == fenced {
			require.NotEqual(t, "token none\n", token)
		}
		require.Equal(t, 7, waits.status(t), c.name)

		holds := startProgram(t, file, s, l.hold)
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
