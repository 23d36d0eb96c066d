package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tool is the path of the command.
var tool string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the command and runs the tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfastvet")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tool = filepath.Join(dir, "holdfastvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	return m.Run()
}

// vet runs go vet with the command in a directory, and returns what it found.
//
// Most of the time goes into what the command has to know of imported packages. Go keeps that for
// the next run with the same flags, so tests that use vet do not run at the same time, and those
// with flags import little.
func vet(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"vet", "-vettool=" + tool}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	// Without GOGC, garbage would take a sixth of the time of hundreds of short runs.
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOGC=400"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestGoVetFindsNothingInTheCommandsAndExamplesOfHoldfast(t *testing.T) {
	out, err := vet(t, "../..", nil, "./examples/...")
	require.NoError(t, err, "%s", out)

	// The program and some examples are modules of their own.
	modules, err := filepath.Glob("../../examples/*/go.mod")
	require.NoError(t, err)
	for _, module := range append(modules, "../holdfast/go.mod") {
		out, err := vet(t, filepath.Dir(module), nil, "./...")
		require.NoError(t, err, "%s", out)
	}
}

const mistaken = `package main

import (
	"context"

	"holdfast/rlock"
)

func main() {}

func work(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return nil
}
`

func TestGoVetFindsAMistakeInAModuleThatUsesHoldfast(t *testing.T) {
	holdfast, err := filepath.Abs("../..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(holdfast, "go.sum"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"main.go": mistaken,
		"go.mod": "module example.com/user\n\ngo 1.25.0\n\nrequire holdfast v0.0.0\n\n" +
			"replace holdfast => " + holdfast + "\n",
		"go.sum": string(sums),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	out, err := vet(t, dir, nil, "-mod=mod", ".")
	require.Error(t, err)
	require.Contains(t, out, "main.go:16:8: the error of hold.Unlock is dropped")
}

const another = `
func early(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	defer hold.UnlockTo(ctx, &err)
	return err
}
`

// The stub of rlock will do, which internal/rules compares with rlock.
func TestGoVetLeavesOutTheRuleThatAFlagDisables(t *testing.T) {
	stubs, err := filepath.Abs("internal/rules/testdata")
	require.NoError(t, err)
	env := []string{"GO111MODULE=off", "GOFLAGS=", "GOPATH=" + stubs}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(mistaken), 0o600))
	out, err := vet(t, dir, env, "-unlockerror=false", ".")
	require.NoError(t, err, "%s", out)

	require.NoError(t, os.WriteFile(file, []byte(mistaken+another), 0o600))
	out, err = vet(t, dir, env, "-unlockerror=false", ".")
	require.Error(t, err)
	require.Contains(t, out, "main.go:22:2: hold is released by defer before")
	require.NotContains(t, out, "is dropped")
}
