package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// process is the backend that runs redis-server as a child process.
type process struct {
	path     string
	dir      string
	log      string
	settings *settings

	cmd   *exec.Cmd       // of the last launch; nil before the first
	ended <-chan struct{} // closed when cmd has been waited for
}

func newProcess(tb testing.TB, path string, s *settings) *process {
	tb.Helper()
	// The log is not in dir: the server starts with an empty directory.
	p := &process{path: path, dir: memoryDir(tb), log: filepath.Join(tb.TempDir(), "redis.log"),
		settings: s}
	require.NoError(tb, os.WriteFile(p.log, nil, 0o600))
	return p
}

// memoryDir returns a directory of the test in memory, if the system has one. Files there outlive
// their server like those on a disk, but a busy disk cannot stall a server that waits for it: with
// appendfsync always, and Sentinels and clusters that store what they know.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	const memory, enough = "/dev/shm", 1 << 30 // a container has 64 MB by default
	if !hasRoom(memory, enough) {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "redistest-") //nolint:usetesting // tb.TempDir is on a disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("redistest: remove the files of a server: %v", err)
		}
	})
	return dir
}

func (p *process) Launch(port int) error {
	var certificates string
	if p.settings.tls != nil {
		certificates = p.settings.tls.dir
	}
	cmd := exec.Command(p.path, "--bind", host, "--dir", p.dir)
	cmd.Args = append(cmd.Args, p.settings.arguments(port, certificates)...)
	if p.settings.sentinel {
		file := filepath.Join(p.dir, "sentinel.conf")
		// A Sentinel keeps what it knows through a restart.
		empty, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return err
		}
		empty.Close()
		cmd.Args = slices.Insert(cmd.Args, 1, file, "--sentinel")
	}
	cmd.Dir = p.dir
	// The server's own log file would miss complaints about its arguments.
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log

	// A server killed by its test has no exit status worth reporting; one that ended by itself logged
	// why.
	ended, err := StartChild(cmd, func() { _ = cmd.Wait() })
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", p.path, err)
	}
	p.cmd, p.ended = cmd, ended
	return nil
}

func (p *process) Stopped() <-chan struct{} { return p.ended }

func (p *process) Owns(processID string) bool {
	return processID == strconv.Itoa(p.cmd.Process.Pid)
}

func (p *process) Kill() error {
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

func (p *process) Remove() error { return p.Kill() }

// isolate can only pause: rules for packets would be the machine's, and need root.
func (p *process) Isolate() error { return p.Pause() }

func (p *process) Rejoin() error { return p.Resume() }

func (p *process) Output() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
