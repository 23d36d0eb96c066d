package contestants

import (
	"context"
	"time"

	"github.com/redis/rueidis/rueidislock"

	"holdfast/bench/contest"
)

// rueidisLock is rueidislock as its README sets it up for one server of Redis 7. tryNextAfter is
// how long it waits for a reply; 0 is its default. It derives a context from the caller's for each
// acquisition, and its unlock takes none.
func rueidisLock(name, setting string, tryNextAfter time.Duration) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Other, Cut: true,
		Open: func(s contest.Setup) (contest.Client, error) {
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidisOption(s.Addresses[0], s), KeyMajority: 1,
				NoLoopTracking: true, TryNextAfter: tryNextAfter,
				KeyValidity: s.Period, ExtendInterval: s.Period / 3,
			})
			if err != nil {
				return nil, err
			}
			return rueidislockClient{locker}, nil
		}}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Locker(name string) contest.Locker {
	return &rueidislockLocker{locker: c.locker, name: name}
}

func (c rueidislockClient) Close() { c.locker.Close() }

type rueidislockLocker struct {
	locker rueidislock.Locker
	name   string
	cancel context.CancelFunc
}

func (l *rueidislockLocker) Lock(ctx context.Context) (err error) {
	_, l.cancel, err = l.locker.WithContext(ctx, l.name)
	return err
}

func (l *rueidislockLocker) Unlock(context.Context) error {
	l.cancel() // returns when the key is deleted
	return nil
}
