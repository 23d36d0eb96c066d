package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// build builds the command and returns its path.
func build(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "holdfastvet")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return tool
}

// vet runs go vet with the command in a module, and returns what it found.
func vet(t *testing.T, tool, dir string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"vet", "-vettool=" + tool}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestGoVetFindsNothingInTheCommandsAndExamplesOfHoldfast(t *testing.T) {
	t.Parallel()
	tool := build(t)
	packages := []string{"./cmd/..."}
	if _, err := os.Stat("../../examples"); err == nil {
		packages = append(packages, "./examples/...")
	}
	out, err := vet(t, tool, "../..", packages...)
	require.NoError(t, err, "%s", out)

	// Some examples are modules of their own.
	modules, err := filepath.Glob("../../examples/*/go.mod")
	require.NoError(t, err)
	for _, module := range modules {
		out, err := vet(t, tool, filepath.Dir(module), "./...")
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
	t.Parallel()
	tool := build(t)
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
	out, err := vet(t, tool, dir, "-mod=mod", ".")
	require.Error(t, err)
	require.Contains(t, out, "main.go:16:8: the error of hold.Unlock is dropped")

	out, err = vet(t, tool, dir, "-mod=mod", "-unlockerror=false", ".")
	require.NoError(t, err, "%s", out)
}
