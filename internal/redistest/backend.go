package redistest

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

// A backend runs one server, as a process or as a container. Its methods are
// called by one goroutine at a time.
type backend interface {
	// launch runs the server on port. It returns when the server was started,
	// not when it answers. After kill, the same port brings back the same data
	// directory.
	launch(port int) error
	// stopped is closed when the server of the last launch has ended.
	stopped() <-chan struct{}
	// owns tells whether the server that calls itself by this process id is the
	// one launched here.
	owns(processID string) bool
	// kill ends the server at once, paused or not, and waits until it has ended.
	// It does nothing when no server runs.
	kill() error
	// remove is kill for good: nothing is left behind.
	remove() error
	pause() error
	resume() error
	// output is what the server has logged.
	output() string
}

const (
	backendVariable = "HOLDFAST_TEST_BACKEND"
	serverVariable  = "HOLDFAST_TEST_SERVER"
)

// newBackend picks the backend as the package documentation says. It fails tb
// when there is none.
func newBackend(tb testing.TB, s *settings) backend {
	tb.Helper()
	choice := os.Getenv(backendVariable)
	program := cmp.Or(os.Getenv(serverVariable), "redis-server")
	path, err := exec.LookPath(program)
	switch {
	case choice != "" && choice != "process" && choice != "docker":
		tb.Fatalf("redistest: %s=%s: want process or docker", backendVariable, choice)
	case choice == "process" && err != nil:
		tb.Fatalf("redistest: %s=process, but there is no %s: %v", backendVariable, program, err)
	case choice == "process", choice == "" && err == nil:
		return newProcess(tb, path, s)
	}
	d, err := newDocker(s)
	switch {
	case err == nil:
		return d
	case choice == "docker":
		tb.Fatalf("redistest: %s=docker, but no Docker engine answers: %v", backendVariable, err)
	default:
		tb.Fatalf("redistest: no %s on PATH and no Docker engine answers: install the package redis-server or start Docker (%v)",
			program, err)
	}
	return nil
}
