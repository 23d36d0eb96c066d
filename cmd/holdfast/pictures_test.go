//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/picture"
	"holdfast/cmd/holdfast/internal/terminal"
)

// TestPictures makes the pictures of the documents from a real run: make pictures has them written
// to docs/pictures.
func TestPictures(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p := single(t)
	environment := append(os.Environ(), "REDIS_URL=redis://"+p.nodes[0].Addr())
	bin := t.TempDir()
	// job runs a command under a lock. The program has the name of a service, as that would have.
	job := func(service string, args ...string) {
		program := filepath.Join(bin, service)
		if _, err := os.Stat(program); err != nil {
			require.NoError(t, os.Link(binary, program))
		}
		cmd := exec.CommandContext(ctx, program, append(append([]string{"run", "--quiet"}, args...),
			"--", "sleep", "100")...)
		cmd.Env = environment
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Cancel(); _ = cmd.Wait() })
	}
	held := func(names ...string) {
		for _, name := range names {
			require.Eventually(t, func() bool { return p.nodes[0].DoInt(t, "EXISTS", name) == 1 },
				20*time.Second, 10*time.Millisecond)
		}
	}
	job("reports", "nightly-report")
	job("mailer", "--kind", "fair", "mail:outbox")
	job("billing", "--kind", "fenced", "ledger:close")
	job("indexer", "--kind", "write", "index:products")
	job("shop", "--kind", "read", "prices:eu")
	job("shop", "--kind", "read", "prices:eu")
	held("nightly-report", "mail:outbox", "ledger:close", "index:products", "prices:eu")
	p.hold(t, "stock:4711", java, "2")
	for range 3 {
		job("mailer", "--kind", "fair", "mail:outbox")
	}
	job("reports", "nightly-report")
	require.Eventually(t, func() bool {
		return p.nodes[0].DoInt(t, "LLEN", "redisson_lock_queue:{mail:outbox}") == 3 &&
			p.nodes[0].DoInt(t, "ZCARD", "holdfast_lock_waiters:{nightly-report}") == 1 &&
			p.nodes[0].DoInt(t, "HLEN", "prices:eu") == 3
	}, 20*time.Second, 10*time.Millisecond)

	dir := cmp.Or(os.Getenv("HOLDFAST_PICTURES"), t.TempDir())
	for _, c := range []struct {
		name, until, line string
		columns, rows     int
	}{
		{"top", "6 locks, 4 waiters", "holdfast top", 100, 12},
		{"inspect", "3. ", "holdfast inspect mail:outbox", 100, 40},
		{"doctor", "version", "holdfast doctor", 130, 60},
	} {
		cmd := exec.CommandContext(ctx, "sh", "-c", `holdfast() { "$0" "$@"; }; echo "$ $1"; eval "$1"`,
			binary, c.line)
		cmd.Env = slices.Clone(environment)
		on, err := terminal.Start(cmd, c.columns, c.rows)
		require.NoError(t, err)
		t.Cleanup(on.Stop)
		require.NoError(t, on.WaitForText(ctx, c.until))
		if c.name != "top" {
			_, err = on.Wait(ctx)
			require.NoError(t, err)
		}
		svg := picture.SVG(on, c.line)
		require.Less(t, len(svg), 60_000)
		require.Contains(t, svg, c.until)
		require.NotContains(t, svg, "<script")
		for x := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := x.Token(); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, c.name+".svg"), []byte(svg), 0o644))
	}
}
