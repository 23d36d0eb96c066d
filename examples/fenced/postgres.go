package fenced

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"holdfast/rlock"
)

// schema has the largest token of each name.
const schema = `
CREATE TABLE fences (name text PRIMARY KEY, token bigint NOT NULL);
`

var errStale = errors.New("a later owner has written already")

// transact runs work in a transaction under the fenced lock of a name.
func transact(ctx context.Context, client *rlock.Client, db *sql.DB, name string,
	work func(context.Context, *sql.Tx) error,
) (err error) {
	hold, err := client.NewFencedLock(name).TryLock(ctx, 3*time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err) // after the commit
	return commit(hold.Context(), db, name, hold.Token(), work)
}

// commit commits work, unless a transaction with a larger token was committed before.
func commit(ctx context.Context, db *sql.DB, name string, token int64,
	work func(context.Context, *sql.Tx) error,
) error {
	tx, err := db.BeginTx(ctx, nil) // rolled back when the lock is lost
	if err != nil {
		return err
	}
	defer tx.Rollback()
	fence, err := tx.ExecContext(ctx, `INSERT INTO fences VALUES ($1, $2) ON CONFLICT (name)
		DO UPDATE SET token = $2 WHERE fences.token <= $2`, name, token)
	if err != nil {
		return err
	}
	if rows, err := fence.RowsAffected(); err != nil || rows == 0 {
		return errors.Join(err, errStale)
	}
	if err := work(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}
