package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/redlock"
	"holdfast/rlock"
)

// lock is the lock of a run, and its clients.
type lock struct {
	rlock.Locker
	redis   []rueidis.Client
	clients []*rlock.Client
}

// closeTimeout bounds the removal of what may be left in Redis: a registration, a late grant.
const closeTimeout = 3 * time.Second

// open connects, and returns the lock. close must be called.
func (o Options) open(ctx context.Context) (l *lock, err error) {
	l = new(lock)
	if o.Quorum {
		err = l.dialAll(ctx, o.Flags)
	} else {
		var redis rueidis.Client
		if redis, err = o.Client(ctx); err == nil {
			l.redis = []rueidis.Client{redis}
		}
	}
	if err != nil {
		return nil, err
	}
	for _, redis := range l.redis {
		client, err := rlock.New(redis, rlock.Options{WatchdogLease: o.Lease, Logger: logger(),
			Label: "run " + filepath.Base(o.Args[0])})
		if err != nil {
			l.close()
			return nil, status.New(status.Usage, err)
		}
		l.clients = append(l.clients, client)
	}
	if l.Locker = redlock.NewOn(o.Name, redlock.Options{}, l.clients...); !o.Quorum {
		l.Locker = o.Kind.of(l.clients[0], o.Name)
	}
	return l, nil
}

// dialAll connects to independent servers, of which a minority may be down.
func (l *lock) dialAll(ctx context.Context, f connect.Flags) error {
	options, err := f.Options()
	if err != nil {
		return err
	}
	// A server that hangs costs the time-out of the dial, for all together.
	type dialed struct {
		redis rueidis.Client
		err   error
	}
	all := make([]chan dialed, len(options))
	for i, option := range options {
		option.ForceSingleClient = true // the client works once its server does
		all[i] = make(chan dialed, 1)
		go func() {
			redis, err := rueidis.NewClient(option)
			all[i] <- dialed{redis, err}
		}()
	}
	var failures []error
	for i, each := range all {
		d := <-each
		if d.redis != nil {
			l.redis = append(l.redis, d.redis)
		}
		if d.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", options[i].InitAddress[0], d.err))
		}
	}
	if len(l.redis) < len(options) || len(failures) > (len(options)-1)/2 {
		l.close()
		return status.New(status.Server, fmt.Errorf("too few servers for a quorum: %w",
			errors.Join(failures...)))
	}
	return ctx.Err()
}

// of returns the lock of this kind.
func (k Kind) of(c *rlock.Client, name string) rlock.Locker {
	switch k {
	case Fair:
		return c.NewFairLock(name)
	case Fenced:
		return c.NewFencedLock(name)
	case Read:
		return c.NewReadWriteLock(name).Read()
	case Write:
		return c.NewReadWriteLock(name).Write()
	}
	return c.NewLock(name)
}

// close ends the clients, and removes what they left in Redis if that can be reached.
func (l *lock) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, c := range l.clients {
		_ = c.Close(ctx) // the process ends anyway
	}
	if ctx.Err() != nil {
		return // a rueidis client may wait for a server that hangs
	}
	for _, r := range l.redis {
		r.Close()
	}
}

// acquireError returns an error of an acquisition with its exit status, unless it has one.
func (o Options) acquireError(err error, l *lock) error {
	var known *status.Error
	var unanswered *rlock.ServerError // a RedLock may be another's although a server is down
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, rlock.ErrInvalid):
		return status.New(status.Usage, err)
	case !errors.Is(err, rlock.ErrNotAcquired), !o.Quorum && errors.As(err, &unanswered):
		return status.New(status.Server, err)
	case o.Quiet:
		return status.New(o.Conflict, nil)
	}
	var held *rlock.HeldError
	if !o.Quorum && errors.As(err, &held) && !held.Next {
		if who := heldBy(l, o.Name); who != "" {
			err = fmt.Errorf("lock %q: not acquired: %s", o.Name, who)
		}
	}
	return status.New(o.Conflict, err)
}

// heldBy says who holds a lock: its process, if Redis knows that. "" if nobody does any more.
func heldBy(l *lock, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), redrawn)
	defer cancel()
	found, err := locks.Inspect(ctx, l.redis[0], name)
	if err != nil || len(found.Holders) == 0 {
		return ""
	}
	return view.Line(found, 0)
}
