package contestants

import (
	"context"
	"sync"

	"holdfast/bench/contest"
)

// localQueue is the raw scripts behind a queue in the process: they never contend in Redis, and
// each acquisition costs two commands.
func localQueue() contest.Contestant {
	return contest.Contestant{Name: "raw scripts, local queue",
		Setting: "first come, first served in the process; two commands per acquisition",
		Part:    contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			client, err := openRaw(s.Addresses[0], s)
			if err != nil {
				return nil, err
			}
			return &localClient{rawClient: rawClient{client, newClientName()},
				mutexes: map[string]*fairMutex{}}, nil
		}}
}

type localClient struct {
	rawClient

	mu      sync.Mutex
	mutexes map[string]*fairMutex
}

func (c *localClient) Locker(name string) contest.Locker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mutexes[name] == nil {
		c.mutexes[name] = &fairMutex{}
	}
	inner := c.rawClient.Locker(name).(*rawLocker)
	return &localLocker{rawLocker: *inner, mutex: c.mutexes[name], granted: make(chan struct{}, 1)}
}

// fairMutex is a mutex that is first come, first served.
type fairMutex struct {
	mu      sync.Mutex
	locked  bool
	waiting []chan struct{}
}

type localLocker struct {
	rawLocker
	mutex   *fairMutex
	granted chan struct{}
}

func (l *localLocker) Lock(ctx context.Context) error {
	l.mutex.mu.Lock()
	if waits := l.mutex.locked; waits {
		l.mutex.waiting = append(l.mutex.waiting, l.granted)
		l.mutex.mu.Unlock()
		if err := receive(ctx, l.granted); err != nil {
			return err
		}
	} else {
		l.mutex.locked = true
		l.mutex.mu.Unlock()
	}
	return l.rawLocker.Lock(ctx)
}

func (l *localLocker) Unlock(ctx context.Context) error {
	err := l.rawLocker.Unlock(ctx)
	l.mutex.mu.Lock()
	defer l.mutex.mu.Unlock()
	if len(l.mutex.waiting) == 0 {
		l.mutex.locked = false
		return err
	}
	next := l.mutex.waiting[0]
	// Slicing off the front would make append allocate now and then.
	l.mutex.waiting = l.mutex.waiting[:copy(l.mutex.waiting, l.mutex.waiting[1:])]
	next <- struct{}{}
	return err
}
