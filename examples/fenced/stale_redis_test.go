//go:build redis

package fenced

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func init() { processes["writer"] = func(args []string) error { return write(args, os.Stdin) } }

// places has where the locks and the resources are.
type places struct{ redis, postgres, http string }

// writer writes a value with a token.
type writer func(ctx context.Context, name, value string, token int64) error

// update is the work of transactions.
func update(ctx context.Context, tx *sql.Tx, name, value string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO "values" VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = $2`, name, value)
	return err
}

// withoutFence is commit without its first statement.
func withoutFence(ctx context.Context, db *sql.DB, name, value string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := update(ctx, tx, name, value); err != nil {
		return err
	}
	return tx.Commit()
}

// writers returns how to write to each resource, with its fence and without.
func writers(at places, redis rueidis.Client, db *sql.DB) map[string]writer {
	return map[string]writer{
		"PostgreSQL": func(ctx context.Context, name, value string, token int64) error {
			return commit(ctx, db, name, token, func(ctx context.Context, tx *sql.Tx) error {
				return update(ctx, tx, name, value)
			})
		},
		"PostgreSQL without fence": func(ctx context.Context, name, value string, _ int64) error {
			return withoutFence(ctx, db, name, value)
		},
		"Redis": func(ctx context.Context, name, value string, token int64) error {
			return set(ctx, redis, "values:"+name, value, token)
		},
		"Redis without fence": func(ctx context.Context, name, value string, _ int64) error {
			return redis.Do(ctx, redis.B().Hset().Key("values:"+name).FieldValue().
				FieldValue("value", value).Build()).Error()
		},
		"HTTP": func(ctx context.Context, name, value string, token int64) error {
			return put(ctx, at.http+"/fenced/"+name, strings.NewReader(value), token)
		},
		"HTTP without fence": func(ctx context.Context, name, value string, token int64) error {
			return put(ctx, at.http+"/open/"+name, strings.NewReader(value), token)
		},
	}
}

// serve is the HTTP service of the test.
func serve(t *testing.T, db *sql.DB) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("PUT /fenced/{name}", handler(db, func(r *http.Request, tx *sql.Tx) error {
		value, err := io.ReadAll(r.Body)
		return errors.Join(err, update(r.Context(), tx, r.PathValue("name"), string(value)))
	}))
	mux.HandleFunc("PUT /open/{name}", func(w http.ResponseWriter, r *http.Request) {
		value, err := io.ReadAll(r.Body)
		err = errors.Join(err, withoutFence(r.Context(), db, r.PathValue("name"), string(value)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// write is a process that writes to a resource under a lock. For each line on stdin it acquires the
// lock and prints the token, and is about to write then. With the next line it writes this value,
// and prints what became of it. Its writes do not end with the lock, as if they were under way.
func write(args []string, stdin io.Reader) (err error) {
	resource, name := args[0], args[1]
	at := places{redis: args[2], postgres: args[3], http: args[4]}
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at.redis}})
	if err != nil {
		return err
	}
	defer redis.Close()
	db, err := sql.Open("pgx", at.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := rlock.New(redis, rlock.Options{
		WatchdogLease:  60 * time.Millisecond,
		CommandTimeout: time.Minute,                   // a slow machine
		Logger:         slog.New(slog.DiscardHandler), // each round loses a lock
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		hold, err := client.NewFencedLock(name).Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		fmt.Println(hold.Token())
		if !lines.Scan() {
			return errors.Join(lines.Err(), hold.Unlock())
		}
		switch err := writers(at, redis, db)[resource](ctx, name, lines.Text(), hold.Token()); {
		case err == nil:
			err = hold.Unlock()
			if err != nil && !errors.Is(err, rlock.ErrLost) {
				return err
			}
			fmt.Println("accepted")
		case errors.Is(err, errStale):
			_ = hold.Unlock() // lost
			fmt.Println("stale")
		default:
			return err
		}
	}
	return nil
}

// acquire makes a process acquire its lock, and returns the token.
func acquire(t *testing.T, p *locktest.Process) (token int64) {
	t.Helper()
	p.Tell(t, "acquire")
	token, err := strconv.ParseInt(p.Line(t), 10, 64)
	require.NoError(t, err)
	return token
}

// stop stops a process, and returns when it no longer runs.
func stop(t *testing.T, p *locktest.Process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped(), "the process ended")
}

// staleWritesAreRejected stops holders that are about to write. Another process gets the lock
// when the lease has ended, and writes. What the stopped one writes afterwards is stale, because a
// write with a larger token has come first: the test sees to that, and needs neither a clock nor
// the fence to know it. Without the fence each of these writes is accepted.
func staleWritesAreRejected(t *testing.T, source string) {
	server := redistest.Start(t)
	at := places{redis: server.Addr(), postgres: source}
	db := openPostgres(t, at.postgres)
	_, err := db.ExecContext(t.Context(),
		`CREATE TABLE "values" (name text PRIMARY KEY, value text NOT NULL)`)
	require.NoError(t, err)
	at.http = serve(t, db)
	redis := server.Client(t)

	const pairs = 2 // of processes, for each resource
	var stale, accepted atomic.Int64
	t.Run("pairs", func(t *testing.T) {
		for resource := range writers(places{}, nil, nil) {
			_, open := strings.CutSuffix(resource, " without fence")
			for i := range pairs {
				rounds := *writes / 2 / pairs
				if open {
					rounds = 3
				}
				t.Run(fmt.Sprint(resource, " ", i), func(t *testing.T) {
					t.Parallel()
					name := fmt.Sprint(strings.ReplaceAll(resource, " ", "-"), "-", i)
					p := [2]*locktest.Process{}
					for i := range p {
						p[i] = locktest.StartProcess(t, "writer", resource, name,
							at.redis, at.postgres, at.http)
					}
					for round := range rounds {
						paused, next := p[round%2], p[(round+1)%2]
						token := acquire(t, paused)
						stop(t, paused)
						require.Greater(t, acquire(t, next), token)
						next.Tell(t, fmt.Sprint("fresh ", round))
						require.Equal(t, "accepted", next.Line(t))
						require.NoError(t, paused.Signal(syscall.SIGCONT))
						paused.Tell(t, fmt.Sprint("stale ", round))
						outcome, want := paused.Line(t), fmt.Sprint("fresh ", round)
						if open {
							require.Equal(t, "accepted", outcome)
							want = fmt.Sprint("stale ", round)
							accepted.Add(1)
						} else {
							require.Equal(t, "stale", outcome)
							stale.Add(1)
						}
						require.Equal(t, want, value(t, resource, name, redis, db))
					}
					for _, p := range p {
						require.NoError(t, p.Stdin.Close())
						p.Wait(t)
					}
				})
			}
		}
	})
	t.Logf("with a fence, none of %d stale writes was accepted, of %d writes in all; "+
		"without a fence, each of %d was", stale.Load(), 2*stale.Load(), accepted.Load())
	require.NotZero(t, stale.Load())
	require.NotZero(t, accepted.Load())
}

// value reads what is stored.
func value(t *testing.T, resource, name string, redis rueidis.Client, db *sql.DB) (v string) {
	t.Helper()
	var err error
	if strings.HasPrefix(resource, "Redis") {
		get := redis.B().Hget().Key("values:" + name).Field("value").Build()
		v, err = redis.Do(t.Context(), get).ToString()
	} else {
		err = db.QueryRowContext(t.Context(), `SELECT value FROM "values" WHERE name = $1`, name).Scan(&v)
	}
	require.NoError(t, err)
	return v
}
