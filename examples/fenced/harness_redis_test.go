//go:build redis

package fenced

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// program returns the path of a program of PostgreSQL on PATH, or else of Debian's newest version.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	require.NotEmpty(t, found, "the test needs PostgreSQL, and there is no %s: install the package "+
		"postgresql, or run make test as root on Debian", name)
	return slices.Max(found)
}

// asServer returns a command that runs a program of PostgreSQL. PostgreSQL rejects root, so root
// runs the program as another user, who becomes the owner of the directory.
func asServer(t *testing.T, dir, path string, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return exec.Command(path, args...)
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	require.NoError(t, err, "PostgreSQL does not run as root, and there is no user postgres or nobody")
	uid, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(u.Gid)
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, uid, gid))
	// The death signal does not survive a change of the user, so setpriv sets it anew.
	as := []string{"--reuid=" + u.Uid, "--regid=" + u.Gid, "--clear-groups", "--pdeathsig=KILL", path}
	return exec.Command("setpriv", append(as, args...)...)
}

// startPostgres starts a PostgreSQL without a port for the test, and returns its data source.
func startPostgres(t *testing.T) (source string) {
	t.Helper()
	// Not t.TempDir(): the path of a socket must be short, and other users cannot enter that.
	dir, err := os.MkdirTemp("/tmp", "fenced-") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	data := filepath.Join(dir, "data")
	initdb := asServer(t, dir, program(t, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, "%s: %s", initdb, out)

	server := asServer(t, dir, program(t, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off")
	server.Dir = dir
	output, err := os.Create(filepath.Join(t.TempDir(), "postgres.log"))
	require.NoError(t, err)
	server.Stdout, server.Stderr = output, output
	ended, err := redistest.StartChild(server, func() { _ = server.Wait() }) // it was killed
	require.NoError(t, err, server)
	log := func() string {
		content, err := os.ReadFile(output.Name())
		return fmt.Sprint(string(content), err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // a fast shutdown: it may have ended by itself
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("PostgreSQL does not stop:", log())
			_ = server.Process.Kill()
			<-ended
		}
		output.Close()
	})

	source = fmt.Sprintf("host=%s user=postgres dbname=postgres", dir)
	db := openPostgres(t, source)
	for late := time.Now().Add(time.Minute); db.PingContext(t.Context()) != nil; {
		select {
		case <-ended:
			t.Fatal("PostgreSQL has ended: ", log())
		case <-time.After(20 * time.Millisecond):
			require.True(t, time.Now().Before(late), "PostgreSQL does not respond: %s", log())
		}
	}
	return source
}

// openPostgres connects to a PostgreSQL until the end of the test.
func openPostgres(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
