//go:build containers

package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// docker runs the client of the engine, and returns what it prints and its status.
func docker(t *testing.T, args ...string) (output string, status int) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=0") // the builder that every engine has
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		require.NoError(t, err, "is there a Docker client? make image installs one")
	}
	t.Logf("docker %s: %v\n%s%s", strings.Join(args, " "), cmd.ProcessState, out, stderr.Bytes())
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// succeed is docker for what must succeed.
func succeed(t *testing.T, args ...string) (output string) {
	t.Helper()
	output, status := docker(t, args...)
	require.Zero(t, status, "docker %s", strings.Join(args, " "))
	return output
}

// build builds the image of a program that was built on this machine. That takes no registry.
func build(t *testing.T) (image string) {
	t.Helper()
	dir := t.TempDir()
	compile := exec.Command("go", "build", "-o", filepath.Join(dir, "holdfast"),
		"holdfast/cmd/holdfast")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	image = succeed(t, "build", "-q", "--target", "prebuilt", "-f", "../../Dockerfile", dir)
	t.Cleanup(func() { succeed(t, "rmi", "-f", image) })
	return image
}

// restricted are the flags that do what the manifests of deploy/kubernetes ask for. The network is
// that of this machine, where the server is.
var restricted = []string{"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
	"--network=host"}

// run returns the arguments of docker run.
func run(image string, flags []string, args ...string) []string {
	all := append([]string{"run"}, restricted...)
	return append(append(append(all, flags...), image), args...)
}

func TestImageRunsACommandUnderALock(t *testing.T) {
	image := build(t)
	require.Equal(t, "65532:65532", succeed(t, "inspect", "-f", "{{.Config.User}}", image))
	require.Contains(t, succeed(t, run(image, []string{"--rm"}, "version")...), "holdfast ")

	server := redistest.Start(t)
	job := []string{"run", "-n", "-r", server.Addr(), "nightly", "--", "/holdfast", "version"}
	require.Contains(t, succeed(t, run(image, []string{"--rm"}, job...)...), "holdfast ")
	server.Do(t, "HSET", "nightly", "another:1", "1")
	_, status := docker(t, run(image, []string{"--rm"}, job...)...)
	require.Equal(t, 75, status, "another has the lock")
}

// As process 1 a program gets no signal that it does not handle, and must reap orphans.
func TestContainerReleasesItsLockWhenItIsStopped(t *testing.T) {
	image, server := build(t), redistest.Start(t)
	// The image has no other command that lasts than one that waits for a lock.
	server.Do(t, "HSET", "taken", "another:1", "1")
	id := succeed(t, run(image, []string{"-d"}, "run", "-r", server.Addr(), "job", "--",
		"/holdfast", "run", "-r", server.Addr(), "taken", "--", "/holdfast", "version")...)
	t.Cleanup(func() { succeed(t, "rm", "-f", id) })
	locktest.Eventually(t, func() bool {
		logs, _ := exec.Command("docker", "logs", id).CombinedOutput()
		return strings.Contains(string(logs), "waiting")
	}, "the command does not run")
	require.EqualValues(t, 1, server.DoInt(t, "EXISTS", "job"))

	succeed(t, "kill", "--signal=TERM", id)
	status, err := strconv.Atoi(succeed(t, "wait", id))
	require.NoError(t, err)
	require.Equal(t, 143, status, "the status of the command, which ended by SIGTERM")
	require.Zero(t, server.DoInt(t, "EXISTS", "job"), "the lock was released")
}
