package rivals

import (
	"context"
	"sync"

	"holdfast/bench/contest"
)

// localQueue is the raw scripts behind a queue in the process: they never meet in Redis, and each acquisition costs two
// commands.
func localQueue() contest.Contestant {
	return contest.Contestant{Name: "raw scripts, local queue", Setting: "first come, first served in the process; two commands per acquisition", Part: contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			client, err := openRaw(s.Addresses[0], s)
			if err != nil {
				return nil, err
			}
			return &localClient{rawClient: rawClient{client, newClientName()}, lines: map[string]*localLine{}}, nil
		}}
}

type localClient struct {
	rawClient

	mu    sync.Mutex
	lines map[string]*localLine
}

func (c *localClient) Locker(name string) contest.Locker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines[name] == nil {
		c.lines[name] = &localLine{}
	}
	inner := c.rawClient.Locker(name).(*rawLocker)
	return &localLocker{rawLocker: *inner, line: c.lines[name], turn: make(chan struct{}, 1)}
}

// localLine is a mutex that is fair.
type localLine struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{}
}

type localLocker struct {
	rawLocker
	line *localLine
	turn chan struct{}
}

func (l *localLocker) Lock(ctx context.Context) error {
	l.line.mu.Lock()
	if waits := l.line.taken; waits {
		l.line.waiting = append(l.line.waiting, l.turn)
		l.line.mu.Unlock()
		if err := receive(ctx, l.turn); err != nil {
			return err
		}
	} else {
		l.line.taken = true
		l.line.mu.Unlock()
	}
	return l.rawLocker.Lock(ctx)
}

func (l *localLocker) Unlock(ctx context.Context) error {
	err := l.rawLocker.Unlock(ctx)
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	if len(l.line.waiting) == 0 {
		l.line.taken = false
		return err
	}
	next := l.line.waiting[0]
	// Moved rather than cut off at the front, which would have append allocate now and then.
	l.line.waiting = l.line.waiting[:copy(l.line.waiting, l.line.waiting[1:])]
	next <- struct{}{}
	return err
}
