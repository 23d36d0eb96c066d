//go:build redis

package fenced

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// TestPostgres has the tests that need a PostgreSQL, because it takes seconds to start one.
func TestPostgres(t *testing.T) {
	source := startPostgres(t)
	_, err := openPostgres(t, source).ExecContext(t.Context(), schema)
	require.NoError(t, err)
	t.Run("transaction is committed under the lock", func(t *testing.T) {
		transactionIsCommittedUnderTheLock(t, source)
	})
	t.Run("stale writes are rejected", func(t *testing.T) { staleWritesAreRejected(t, source) })
}

func transactionIsCommittedUnderTheLock(t *testing.T, source string) {
	db := openPostgres(t, source)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE accounts (balance bigint NOT NULL)")
	require.NoError(t, err)
	client, err := rlock.New(redistest.Start(t).Client(t), rlock.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close(context.Background())) }()
	insert := func(ctx context.Context, tx *sql.Tx) error {
		held, err := client.NewFencedLock("account:17").IsHeld(ctx)
		require.NoError(t, err)
		require.True(t, held)
		_, err = tx.ExecContext(ctx, "INSERT INTO accounts VALUES (1)")
		return err
	}
	sum := func() (n int) {
		row := db.QueryRowContext(t.Context(), "SELECT count(*) FROM accounts")
		require.NoError(t, row.Scan(&n))
		return n
	}
	for range 2 {
		require.NoError(t, transact(t.Context(), client, db, "account:17", insert))
	}
	require.Equal(t, 2, sum())
	err = transact(t.Context(), client, db, "account:17", func(ctx context.Context, tx *sql.Tx) error {
		require.NoError(t, insert(ctx, tx))
		return http.ErrAbortHandler
	})
	require.ErrorIs(t, err, http.ErrAbortHandler)
	require.Equal(t, 2, sum(), "it is rolled back")

	// Redis has forgotten the tokens.
	_, err = db.ExecContext(t.Context(), "UPDATE fences SET token = 4711")
	require.NoError(t, err)
	require.ErrorIs(t, transact(t.Context(), client, db, "account:17", insert), errStale)
	require.Equal(t, 2, sum())
}

func TestServiceNeedsAToken(t *testing.T) {
	response := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/accounts/17",
		strings.NewReader("30"))
	handler(nil, nil).ServeHTTP(response, request)
	require.Equal(t, http.StatusPreconditionRequired, response.Code)
}
