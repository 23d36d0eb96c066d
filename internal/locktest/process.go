package locktest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// processVariable names the part that the test binary plays instead of running tests.
const processVariable = "HOLDFAST_TEST_PROCESS"

// Main is TestMain of a package with client processes. It runs the tests and looks for leaked
// goroutines or, in a process of StartProcess, plays its part.
func Main(m *testing.M, processes map[string]func(args []string) error) {
	role := os.Getenv(processVariable)
	if role == "" {
		redistest.VerifyMain(m)
		return
	}
	play, known := processes[role]
	if !known {
		fmt.Fprintf(os.Stderr, "no process %q\n", role)
		os.Exit(2)
	}
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "process %q: %v\n", role, err)
		os.Exit(1)
	}
}

// Process is the test binary in one of the parts that Main knows.
type Process struct {
	*os.Process
	Stdin  io.WriteCloser
	Stdout *bufio.Reader
	cmd    *exec.Cmd
	waited bool // nothing is left to clean up
}

// StartProcess starts a client process in the given part. Clean-up kills it unless Wait or Adopt
// was called.
func StartProcess(t *testing.T, role string, args ...string) *Process {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	// With the race detector a program sleeps for a second before it ends, unless this is set.
	cmd.Env = append(os.Environ(), processVariable+"="+role,
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &Process{Process: cmd.Process, Stdin: stdin, Stdout: bufio.NewReader(stdout), cmd: cmd}
	t.Cleanup(func() {
		if !p.waited {
			_ = p.Kill() // it may have ended by itself
			_ = cmd.Wait()
		}
	})
	return p
}

// Line returns the next line that the process prints, and blocks until there is one.
func (p *Process) Line(t *testing.T) string {
	t.Helper()
	line, err := p.Stdout.ReadString('\n')
	require.NoError(t, err, "the process ended: %q", line)
	return strings.TrimSuffix(line, "\n")
}

// Tell sends the process a line on its standard input.
func (p *Process) Tell(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(p.Stdin, line+"\n")
	require.NoError(t, err)
}

// Wait waits for the process to end, which it must do with success.
func (p *Process) Wait(t *testing.T) {
	t.Helper()
	// Wait would close the pipe while there is output in it.
	_, err := io.Copy(io.Discard, p.Stdout)
	require.NoError(t, err)
	p.waited = true
	require.NoError(t, p.cmd.Wait())
}

// Adopt hands the process to a test that kills it itself and reads Stdout in another goroutine. The
// test must do both, and call reap when it has read everything. reap waits for the process to end,
// in whatever way.
func (p *Process) Adopt() (reap func()) {
	p.waited = true
	return func() { _ = p.cmd.Wait() } // the process was killed
}

// PlayPart returns the environment variable that makes the test binary play a part, for tests that
// start the process themselves.
func PlayPart(role string) string { return processVariable + "=" + role }
