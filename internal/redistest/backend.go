package redistest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A Backend runs one server: as a process, in this process, or as a container. Its methods are
// called by one goroutine at a time.
type Backend interface {
	// Launch runs the server on port. It returns when the server was started, which may be before
	// it replies. After Kill, the same port brings back the same data directory.
	Launch(port int) error
	// Stopped is closed when the server of the last Launch has ended.
	Stopped() <-chan struct{}
	// Owns reports whether the server with this process id is the one launched here.
	Owns(processID string) bool
	// Kill ends the server at once, paused or not, and waits until it has ended. It does nothing
	// when no server runs.
	Kill() error
	// Remove kills the server for good, and leaves nothing behind.
	Remove() error
	Pause() error
	Resume() error
	// Isolate lets nothing pass to or from the server until Rejoin, which does nothing to a server
	// that is not isolated.
	Isolate() error
	Rejoin() error
	// Output returns what the server has logged.
	Output() string
}

// A Request is what a backend of another package must know of a server.
type Request struct {
	// Arguments returns the arguments of redis-server that make it listen on a port, with its
	// certificates, if any, in a directory.
	Arguments func(port int, certificates string) []string
	// Certificates are the files that the server needs in that directory.
	Certificates []string
	// Sentinel makes it a Sentinel, which needs a configuration file that it can write.
	Sentinel bool
	// HostNetwork and OwnNetwork are set by [WithHostNetwork] and [WithOwnNetwork].
	HostNetwork, OwnNetwork bool
}

// Containers makes the backend that HOLDFAST_TEST_BACKEND=docker names. Package
// integration/containers sets it, so that no other package needs the client of a Docker engine.
var Containers func(Request) (Backend, error)

const (
	backendVariable = "HOLDFAST_TEST_BACKEND"
	serverVariable  = "HOLDFAST_TEST_SERVER"
)

// newBackend chooses the backend as the package documentation says. It fails tb when there is none.
func newBackend(tb testing.TB, s *settings) Backend {
	tb.Helper()
	choice := os.Getenv(backendVariable)
	if choice == "" && os.Getenv(serverVariable) != "" {
		choice = "process"
	}
	choice = cmp.Or(choice, defaultBackend)
	switch choice {
	case "inprocess":
		return &inProcess{settings: s}
	case "process":
		path, err := findProgram()
		if err != nil {
			tb.Fatalf("redistest: the test needs a Redis server, but %v: install the package "+
				"redis-server, or run make test", err)
		}
		return newProcess(tb, path, s)
	case "docker":
		if Containers == nil {
			tb.Fatalf("redistest: %s=docker is only for packages that import "+
				"integration/containers: use process", backendVariable)
		}
		container, err := Containers(s.request())
		if err != nil {
			tb.Fatalf("redistest: %s=docker, but no Docker engine answers: %v",
				backendVariable, err)
		}
		return container
	}
	tb.Fatalf("redistest: %s=%s: want inprocess, process or docker", backendVariable, choice)
	return nil
}

// request returns what a backend of another package must know of the server.
func (s *settings) request() Request {
	r := Request{Arguments: s.arguments, Sentinel: s.sentinel, HostNetwork: s.hostNetwork,
		OwnNetwork: s.ownNetwork}
	if s.tls != nil {
		r.Certificates = s.tls.files()
	}
	return r
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
