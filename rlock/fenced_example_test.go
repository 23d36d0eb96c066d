package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"holdfast/rlock"
)

// ledger is a resource that a fenced lock guards: a table in a database, for one. It remembers the
// largest token that it has seen, and refuses smaller ones, in the same transaction as the write
// itself.
//
//	UPDATE ledger SET entry = $1, token = $2 WHERE token <= $2
type ledger struct {
	mu    sync.Mutex
	entry string // guarded by mu
	token int64  // guarded by mu
}

var errStale = errors.New("stale token")

func (l *ledger) write(entry string, token int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.token {
		return fmt.Errorf("%w: %d, after %d", errStale, token, l.token)
	}
	l.entry, l.token = entry, token
	return nil
}

func ExampleHold_Token() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewFencedLock("ledger")
	var table ledger

	first, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("first:", table.write("by the first", first.Token()))

	// The first process is stopped for longer than its lease, and does not know it yet. The lock
	// looks like this then.
	if _, err := lock.ForceUnlock(ctx); err != nil {
		panic(err)
	}
	second, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("second:", table.write("by the second", second.Token()))

	// It resumes, with a write that was on its way.
	fmt.Println("first:", table.write("by the first, late", first.Token()))
	fmt.Println("the table was written", table.entry)
	_ = second.Unlock(ctx)
	// Output:
	// first: <nil>
	// second: <nil>
	// first: stale token: 1, after 2
	// the table was written by the second
}
