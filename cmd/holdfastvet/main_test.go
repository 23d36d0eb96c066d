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
	defer hold.Unlock()
	return nil
}
`

// user makes a module that uses holdfast, with one file, and returns its directory.
func user(t *testing.T, source string) string {
	t.Helper()
	holdfast, err := filepath.Abs("../..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(holdfast, "go.sum"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"main.go": source,
		"go.mod": "module example.com/user\n\ngo 1.25.0\n\nrequire holdfast v0.0.0\n\n" +
			"replace holdfast => " + holdfast + "\n",
		"go.sum": string(sums),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// vet runs go vet in a directory, and returns what it prints.
func vet(t *testing.T, dir string, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"vet", "-mod=mod"}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir = dir
	// Without GOGC, garbage would take a sixth of the time of hundreds of short runs.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOGC=400")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestGoVetFindsAMistakeInAModuleThatUsesHoldfast(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "holdfastvet")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	found, err := vet(t, user(t, mistaken), "-vettool="+tool)
	require.Error(t, err)
	require.Contains(t, found, "main.go:16:8: the error of hold.Unlock is ignored")
}

// No rule looks for a wait and a lease that are swapped, because the compiler refuses them.
func TestSwappedWaitAndLeaseDoNotCompile(t *testing.T) {
	for name, arguments := range map[string]string{
		"a constant":   "rlock.Watchdog, 3*time.Second",
		"a conversion": "rlock.Lease(30*time.Second), 3*time.Second",
	} {
		t.Run(name, func(t *testing.T) {
			found, err := vet(t, user(t, `package main

import (
	"context"
	"time"

	"holdfast/rlock"
)

func main() {}

func work(ctx context.Context, lock rlock.Locker) error {
	return rlock.Do(ctx, lock, 3*time.Second, rlock.Lease(30*time.Second), ship)
}

func ship(ctx context.Context) error { return ctx.Err() }

func swapped(ctx context.Context, lock rlock.Locker) (*rlock.Hold, error) {
	return lock.TryLock(ctx, `+arguments+`)
}
`))
			require.Error(t, err)
			require.Contains(t, found, "main.go:19:", "only the swapped call is refused")
			require.NotContains(t, found, "main.go:13:")
			require.Contains(t, found, "rlock.Lease")
		})
	}
}
