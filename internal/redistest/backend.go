package redistest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A backend runs one server: as a process, as a container, or in this process. Its methods are
// called by one goroutine at a time.
type backend interface {
	// launch runs the server on port. It returns when the server was started, which may be before
	// it replies. After kill, the same port brings back the same data directory.
	launch(port int) error
	// stopped is closed when the server of the last launch has ended.
	stopped() <-chan struct{}
	// owns reports whether the server with this process id is the one launched here.
	owns(processID string) bool
	// kill ends the server at once, paused or not, and waits until it has ended. It does nothing
	// when no server runs.
	kill() error
	// remove kills the server for good, and leaves nothing behind.
	remove() error
	pause() error
	resume() error
	// isolate lets nothing pass to or from the server until rejoin, which does nothing to a server
	// that is not isolated.
	isolate() error
	rejoin() error
	// output returns what the server has logged.
	output() string
}

const (
	backendVariable = "HOLDFAST_TEST_BACKEND"
	serverVariable  = "HOLDFAST_TEST_SERVER"
)

// newBackend chooses the backend as the package documentation says. It fails tb when there is none.
func newBackend(tb testing.TB, s *settings) backend {
	tb.Helper()
	choice := os.Getenv(backendVariable)
	if choice == "" && os.Getenv(serverVariable) != "" {
		choice = "process"
	}
	choice = cmp.Or(choice, defaultBackend)
	switch choice {
	case "process":
		path, err := findProgram()
		if err != nil {
			tb.Fatalf("redistest: a process is requested, but %v", err)
		}
		return newProcess(tb, path, s)
	case "docker":
		d, err := newDocker(s)
		if err != nil {
			tb.Fatalf("redistest: %s=docker, but no Docker engine answers: %v",
				backendVariable, err)
		}
		return d
	case "inprocess":
		return &inProcess{settings: s}
	}
	tb.Fatalf("redistest: %s=%s: want process, docker or inprocess", backendVariable, choice)
	return nil
}

// findProgram returns the program of server processes.
func findProgram() (string, error) {
	if program := os.Getenv(serverVariable); program != "" {
		path, err := exec.LookPath(program)
		if err != nil {
			return "", fmt.Errorf("there is no %s=%s: %w", serverVariable, program, err)
		}
		return path, nil
	}
	redis, err := exec.LookPath("redis-server")
	valkey, missing := exec.LookPath("valkey-server")
	if err != nil && missing != nil {
		return "", fmt.Errorf("there is neither redis-server nor valkey-server on PATH: %w", err)
	}
	return cmp.Or(redis, valkey), nil
}
