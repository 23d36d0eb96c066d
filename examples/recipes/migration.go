package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// besideJava returns a client for the locks of a Java service.
func besideJava(redis rueidis.Client) (*rlock.Client, error) {
	return rlock.New(redis, rlock.Options{
		NameMapper:    rlock.Prefix("app:"), // setNameMapper; leave it out if Java has none
		WatchdogLease: 30 * time.Second,     // setLockWatchdogTimeout
		SyncReplicas:  rlock.SyncConnected,  // checkLockSyncedSlaves
	})
}

// stage says which locks a version of your service takes.
type stage int

const (
	oldLock stage = iota
	bothLocks
	newLock
)

// do runs work under the locks of the stage. obtain acquires the lock of the old library.
func (s stage) do(ctx context.Context, lock rlock.Locker,
	obtain func(context.Context) (release func(context.Context) error, err error),
	work func(context.Context) error,
) (err error) {
	if s < newLock {
		release, err := obtain(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release(context.WithoutCancel(ctx))) }()
	}
	if s == oldLock {
		return work(ctx)
	}
	return rlock.Do(ctx, lock, 3*time.Second, rlock.Watchdog, work)
}
