package redistest

import (
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"holdfast/internal/portlock"
)

// roleVariable makes the test binary play a part in a test instead of running tests.
const roleVariable = "REDISTEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		VerifyMain(m)
	case "server":
		listenForEver()
	case "owner":
		launchServerAndWait()
	}
}

// listenForEver looks like a server to the process backend.
func listenForEver() {
	port := os.Args[slices.Index(os.Args, "--port")+1]
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	select {}
}

// launchServerAndWait is a test binary that has launched a server. Once it listens, the server
// writes its address to the output of this process.
func launchServerAndWait() {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	reserved, err := portlock.Free()
	if err != nil {
		panic(err)
	}
	if err := os.Setenv(roleVariable, "server"); err != nil {
		panic(err)
	}
	p := &process{path: path, dir: os.TempDir(), log: "/dev/stdout", settings: &settings{}}
	if err := p.Launch(reserved.Number); err != nil {
		panic(err)
	}
	select {}
}
