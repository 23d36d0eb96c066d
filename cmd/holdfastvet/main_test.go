package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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

	tool := filepath.Join(t.TempDir(), "holdfastvet")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	vet := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "-mod=mod", ".")
	vet.Dir = dir
	// Without GOGC, garbage would take a sixth of the time of hundreds of short runs.
	vet.Env = append(os.Environ(), "GOWORK=off", "GOGC=400")
	out, err = vet.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "main.go:16:8: the error of hold.Unlock is dropped")
}
