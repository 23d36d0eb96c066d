package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A checkout is a copy of the repository in which mutants are tested one after the other. It is
// always in the same folder, so that the compiler's cache serves all runs.
type checkout struct{ root, tmp, bin string }

// copyRepository makes a new checkout of the files that Git knows or would add.
func copyRepository(from string, job int) (*checkout, error) {
	all := filepath.Join(os.TempDir(), "holdfast-mutants-"+filepath.Base(from), strconv.Itoa(job))
	c := &checkout{filepath.Join(all, "repo"), filepath.Join(all, "tmp"), filepath.Join(all, "bin")}
	if err := os.RemoveAll(all); err != nil {
		return nil, err
	}
	for _, dir := range []string{c.root, c.tmp, c.bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	files, err := trackedFiles(from)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := copyFile(filepath.Join(from, file), filepath.Join(c.root, file)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// trackedFiles lists the files that Git knows or would add, and that exist.
func trackedFiles(root string) ([]string, error) {
	out, err := command(root, "git", "ls-files", "-z", "-c", "-o", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, file))
		if err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files, nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// build compiles the tests of a package. It returns their program, or "" if there are no tests. An
// error has what the compiler says.
func (c *checkout) build(ctx context.Context, pkg, tags string, flags ...string) (string, error) {
	binary := filepath.Join(c.bin, filepath.Base(pkg)+".test")
	if err := os.RemoveAll(binary); err != nil {
		return "", err
	}
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-tags", tags, "-o", binary},
		flags...)
	out, _, err := c.exec(ctx, 10*time.Minute, c.root, tags, "go", append(args, "./"+pkg)...)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return binary, nil
}

// exec runs a program and returns what it printed, and whether it was killed after the limit, with
// all processes that it had started.
func (c *checkout) exec(ctx context.Context, limit time.Duration, dir, tags, name string,
	args ...string) (out string, late bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, name, args...)
	cmd.Dir = dir
	// The build tag alone chooses where servers come from.
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+c.tmp, "HOLDFAST_TEST_BACKEND=")
	if tags == "" {
		cmd.Env = append(cmd.Env, "HOLDFAST_TEST_SERVER=")
	}
	killWhole(cmd)
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	return string(output), limited.Err() != nil && ctx.Err() == nil, err
}
