package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/identity"
	"holdfast/internal/wait"
	"holdfast/redlock"
	"holdfast/rlock"
)

// lock is the lock of a run, and its clients.
type lock struct {
	rlock.Locker
	redis   []rueidis.Client
	clients []*rlock.Client
	notes   sync.WaitGroup // what noteHold sends
}

// closeTimeout bounds the removal of what may be left in Redis: a registration, a late grant.
const closeTimeout = 3 * time.Second

// open connects, and returns the lock. close must be called.
func (o Options) open(ctx context.Context, until time.Time) (l *lock, err error) {
	l = new(lock)
	l.redis, err = o.connect(ctx, until)
	if err != nil {
		return nil, err
	}
	for _, redis := range l.redis {
		options := rlock.Options{WatchdogLease: o.Lease, Logger: o.logger(),
			Label: o.label(), SyncReplicas: o.SyncReplicas}
		if o.metrics != nil {
			options.Tracer = o.metrics
		}
		client, err := rlock.New(redis, options)
		if err != nil {
			l.close()
			return nil, status.New(status.Usage, err)
		}
		l.clients = append(l.clients, client)
	}
	l.Locker = redlock.NewOn(o.Name, redlock.Options{FsyncAlways: o.FsyncAlways}, l.clients...)
	if !o.Quorum {
		l.Locker = rlock.AtLeast(o.Kind.of(l.clients[0], o.Name), o.AtLeast)
	}
	return l, nil
}

// leastDial is how long connecting may take even if the wait is shorter.
const leastDial = 2 * time.Second

// connect connects to the server, or to all of a quorum. Until the given time it tries again if the
// servers may come back. Without a time it tries once, because a wrong address looks the same.
func (o Options) connect(ctx context.Context, until time.Time) ([]rueidis.Client, error) {
	if until.IsZero() {
		all, _, err := o.dial(ctx)
		return all, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(until), leastDial))
	defer cancel()
	var backoff wait.Backoff
	var failed error
	for {
		all, passes, err := o.dial(ctx)
		if err == nil {
			return all, nil
		}
		if failed == nil || ctx.Err() == nil { // that of a try that was cut off says less
			failed = err
		}
		pause := min(backoff.Next(), time.Until(until))
		if !passes || pause <= 0 {
			return nil, failed
		}
		if backoff.Failures == 1 {
			limit := ""
			if left := time.Until(until); left < longestWait/2 {
				limit = fmt.Sprintf(" for %v", left.Round(time.Second))
			}
			o.note("%v; holdfast tries again%s", err, limit)
		}
		select {
		case <-ctx.Done():
			return nil, failed
		case <-time.After(pause):
		}
	}
}

// dial connects once. If that fails, it reports whether the reason may pass by itself.
func (o Options) dial(ctx context.Context) (all []rueidis.Client, passes bool, err error) {
	if o.Quorum {
		return dialAll(ctx, o.Flags)
	}
	redis, err := o.Client(ctx)
	if err != nil {
		return nil, connect.Passes(err), err
	}
	return []rueidis.Client{redis}, false, nil
}

// dialAll connects to independent servers, of which a minority may be down. If too many are, it
// reports whether enough of them may come back.
func dialAll(ctx context.Context, f connect.Flags) (all []rueidis.Client, passes bool, err error) {
	options, err := f.Options()
	if err != nil {
		return nil, false, err
	}
	// A server that hangs costs the time-out of the dial, for all together.
	type dialed struct {
		redis rueidis.Client
		err   error
	}
	results := make([]chan dialed, len(options))
	for i, option := range options {
		option.ForceSingleClient = true // the client works once its server does
		results[i] = make(chan dialed, 1)
		go func() {
			redis, err := rueidis.NewClient(option)
			results[i] <- dialed{redis, err}
		}()
	}
	var failed failures
	refused, minority := 0, (len(options)-1)/2
	for i, result := range results {
		var d dialed
		select {
		case d = <-result:
		case <-ctx.Done(): // NewClient has no context
			d.err = errors.New("the server did not reply in time")
			go func() { closeAll((<-result).redis) }()
		}
		if d.redis != nil {
			all = append(all, d.redis)
		}
		if d.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", options[i].InitAddress[0], d.err))
			if !connect.Passes(d.err) {
				refused++
			}
		}
	}
	if len(all) < len(options) || len(failed) > minority {
		closeAll(all...)
		return nil, refused <= minority, status.New(status.Server,
			fmt.Errorf("no quorum, because too many servers failed: %w", failed))
	}
	return all, false, nil
}

// failures are the errors of several servers, in one line.
type failures []error

func (f failures) Error() string {
	var texts []string
	for _, err := range f {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// closeAll closes clients, of which some may be nil.
func closeAll(all ...rueidis.Client) {
	for _, redis := range all {
		if redis != nil {
			redis.Close()
		}
	}
}

// of returns the lock of this kind.
func (k Kind) of(c *rlock.Client, name string) *rlock.Lock {
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

// identityLeases is for how many leases Redis keeps who holds a lock, as for the library.
const identityLeases = 3

// noteHold records in Redis that the lock is held from now on, for those who look at it. It does
// not wait for the replies.
func (l *lock) noteHold(lease time.Duration) {
	now := time.Now()
	for i, c := range l.clients {
		l.notes.Go(func() { // an error says nothing about the lock
			_ = identity.NoteHold(context.Background(), l.redis[i], c.ID(), now, identityLeases*lease)
		})
	}
}

// traced returns the lock as a tracer would see it, for metrics without a connection.
func (o Options) traced() rlock.TracedLock {
	l := rlock.TracedLock{Name: o.Name, Kind: string(o.Kind)}
	switch {
	case o.Quorum:
		l.Kind = "redlock"
	case o.Kind == Plain:
		l.Kind = "reentrant"
	}
	options, _ := o.Options()
	var servers []string
	for _, option := range options {
		servers = append(servers, option.InitAddress...)
	}
	slices.Sort(servers)
	l.Server = strings.Join(servers, ",")
	return l
}

// close ends the clients, and removes what they left in Redis if that can be reached.
func (l *lock) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	noted := make(chan struct{})
	go func() {
		l.notes.Wait() // otherwise a late note would outlive the client
		close(noted)
	}()
	select {
	case <-noted:
	case <-ctx.Done():
	}
	for _, c := range l.clients {
		_ = c.Close(ctx) // the process ends anyway
	}
	if ctx.Err() != nil {
		return // a rueidis client may wait for a server that hangs
	}
	closeAll(l.redis...)
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
	}
	// Another had the lock when Redis last replied, which may be long ago if this run waited.
	if o.Wait != rlock.NoWait {
		if err := l.ask(o.Name); err != nil {
			return status.New(status.Server, fmt.Errorf("lock %q: not acquired within %v, "+
				"and the holder is unknown: %w", o.Name, o.Wait, err))
		}
	}
	if o.Quiet {
		return status.New(o.Conflict, nil)
	}
	var held *rlock.HeldError
	if !o.Quorum && errors.As(err, &held) && !held.Next {
		if who := o.heldBy(l); who != "" {
			err = fmt.Errorf("lock %q: not acquired: %s", o.Name, who)
		}
	}
	return status.New(o.Conflict, err)
}

// askTime bounds how long the servers may take to show that they reply.
const askTime = 2 * time.Second

// ask asks the servers for the lock's key, which every user of locks may do. It returns an error if
// too few reply.
func (l *lock) ask(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	results := make(chan error, len(l.redis))
	for _, redis := range l.redis {
		go func() {
			results <- redis.Do(ctx, redis.B().Pttl().Key(name).Build()).Error()
		}()
	}
	var failed failures
	for range l.redis {
		err := <-results
		switch {
		case err == nil || !connect.Passes(err): // a refusal is a reply
		case errors.Is(err, context.DeadlineExceeded):
			failed = append(failed, fmt.Errorf("the server did not reply within %v; run holdfast doctor",
				askTime))
		default:
			failed = append(failed, err)
		}
	}
	if len(failed) > (len(l.redis)-1)/2 {
		return failed
	}
	return nil
}
