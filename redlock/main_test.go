package redlock_test

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

// processes are the parts that the test binary can play as a client process of its own. Test files add theirs in init.
var processes = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
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

// process is the test binary in a part of processes.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	waited bool
}

// startProcess starts a client process in the given part. Clean-up kills it unless wait was called.
func startProcess(t *testing.T, role string, args ...string) *process {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	// A program with the race detector sleeps for a second before it ends, unless told not to.
	cmd.Env = append(os.Environ(), processVariable+"="+role, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}
	t.Cleanup(func() {
		if !p.waited {
			_ = cmd.Process.Kill() // it may have ended by itself
			_ = cmd.Wait()
		}
	})
	return p
}

// line returns the next line that the process prints, and blocks until there is one.
func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err, "the process ended: %q", line)
	return strings.TrimSuffix(line, "\n")
}

// tell sends the process a line on its standard input.
func (p *process) tell(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(p.stdin, line+"\n")
	require.NoError(t, err)
}

// wait waits for the process to end, which it must do with success.
func (p *process) wait(t *testing.T) {
	t.Helper()
	// Wait would close the pipe while something is in it.
	_, err := io.Copy(io.Discard, p.stdout)
	require.NoError(t, err)
	p.waited = true
	require.NoError(t, p.cmd.Wait())
}
