package transport

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

// endpoint is a rueidis client of one server that follows its address to another server. A name in
// the DNS or a proxy may move to a new master. The shared connections of rueidis then stay with the
// old master, which is now a replica and rejects writes with READONLY. Nothing can make rueidis
// close these connections. So after a rejected write, endpoint sends all commands of this client
// through a private connection, which is a new connection of rueidis's pool.
//
// The client never goes back to the shared connections. There may be several, each to its own
// server, and a replica that has lost its master has old data. A lock that was acquired elsewhere
// is not in the old data, and a renewal there would report the lock as lost.
type endpoint struct {
	rueidis.Client
	wrote *atomic.Bool // a server has accepted a write
	moved func()       // called after commands have moved to another server

	left  atomic.Bool   // commands do not use the shared connections any more
	ended chan struct{} // closed by close

	mu      sync.Mutex
	current *private       // nil while there is none; guarded by mu
	demoted bool           // the last server rejected a write; guarded by mu
	opening *opening       // nil unless a private connection is being opened; guarded by mu
	asked   time.Time      // when a command last wanted a private connection; guarded by mu
	pause   time.Time      // no connection is opened before; guarded by mu
	closed  bool           // guarded by mu
	work    sync.WaitGroup // of goroutines that close connections
}

// private is a dedicated connection that commands share.
type private struct {
	client rueidis.DedicatedClient
	users  int  // commands under way; guarded by endpoint.mu
	left   bool // it gets no more commands; guarded by endpoint.mu
}

// opening is the work to open a private connection.
type opening struct {
	tried    chan struct{} // closed after the first attempt, which commands wait for
	hasTried func()        // closes tried, once
	until    time.Time     // until when they wait
	over     chan struct{} // closed after the last attempt
}

const (
	// openTimeout bounds the wait for the first attempt to open a private connection, because rueidis
	// may block the attempt for as long as the application uses the whole pool.
	openTimeout = time.Second
	// askedFor is how long endpoint keeps trying after a command has wanted a private connection.
	askedFor = 30 * time.Second
	// mostStale is how many connections of the pool the first attempt closes. Some lead to a replica,
	// because they are older than the move, or because the address did not move. The server or a proxy
	// has closed others.
	mostStale = 4
)

// Do sends a command. After a rejected write, Do sends the command to the server that the address
// led to at that time.
func (e *endpoint) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if !e.left.Load() {
		return e.Client.Do(ctx, command)
	}
	p := e.enter(ctx)
	if p == nil {
		if err := ctx.Err(); err != nil {
			return rueidis.NewErrorResult(err)
		}
		return rueidis.NewErrorResult(errLeft)
	}
	bad := false
	defer func() { e.exit(p, bad) }() // even if a hook around rueidis panics
	result := p.client.Do(ctx, command)
	if result.NonRedisError() != nil {
		bad = ctx.Err() == nil // otherwise only the caller has left
	} else {
		bad = rediserr.Demoted(result.Error())
	}
	return result
}

// errLeft is the error of a command while there is no private connection. A shared connection may
// lead to a replica that has lost its master. From its old data, the replica would reply to a
// renewal or a release that the lock is gone, and nothing would reach a write that the replica
// rejects.
var errLeft = &rediserr.Error{Class: rediserr.ClassTemporary,
	Message: "cannot connect to the server that replaced a replica"}

// Follow is called after a server has rejected a write because the server is a replica. Follow
// reports whether there is a connection to another server by now, so that the caller should send
// the command again. Follow blocks until that is known, ctx ends, or openTimeout is over.
func (e *endpoint) Follow(ctx context.Context) bool {
	e.mu.Lock()
	if e.current == nil {
		e.demoted = true
	}
	if e.closed {
		e.left.Store(true)
		e.mu.Unlock()
		return true
	}
	defer e.mu.Unlock()
	e.await(ctx)
	return e.current != nil
}

// enter returns the private connection for a command, which must exit the connection; nil if there
// is none.
func (e *endpoint) enter(ctx context.Context) *private {
	e.mu.Lock()
	if e.closed { // nothing may stay open
		e.mu.Unlock()
		client, _ := e.dial(mostStale)
		if client == nil {
			return nil
		}
		return &private{client: client, users: 1, left: true}
	}
	defer e.mu.Unlock()
	e.await(ctx)
	if e.current != nil {
		e.current.users++
	}
	return e.current
}

// exit ends the use of a private connection by a command. bad means that the server is a replica,
// or that the connection is lost.
func (e *endpoint) exit(p *private, bad bool) {
	e.mu.Lock()
	p.users--
	if bad && e.current == p {
		e.leave()
	}
	unused := p.left && p.users == 0
	if unused && !e.closed {
		e.work.Go(p.client.Close)
		unused = false
	}
	e.mu.Unlock()
	if unused {
		p.client.Close()
	}
}

// leave takes the private connection out of use for new commands. e.mu must be held.
func (e *endpoint) leave() { e.current.left, e.current = true, nil }

// await waits for the first attempt to open a private connection. If there is a connection, or an
// attempt has just failed, await returns at once. ctx ends the wait. await calls ctx.Done before
// anything else, and [commandContext.Done] says what that means. e.mu must be held; await unlocks
// it meanwhile.
func (e *endpoint) await(ctx context.Context) {
	now := time.Now()
	e.asked = now
	if e.current != nil || e.closed {
		return
	}
	if e.opening == nil {
		if now.Before(e.pause) {
			return
		}
		tried := make(chan struct{})
		e.opening = &opening{tried: tried, hasTried: sync.OnceFunc(func() { close(tried) }),
			until: now.Add(openTimeout), over: make(chan struct{})}
		// Nobody waits for the end of open, because rueidis may block it for ever.
		go e.open(e.opening)
	}
	o := e.opening
	e.mu.Unlock()
	defer e.mu.Lock()
	limit := time.NewTimer(o.until.Sub(now))
	defer limit.Stop()
	select {
	case <-o.tried:
	case <-ctx.Done():
	case <-limit.C:
	}
}

// open tries to open a private connection. The waiting callers continue even if there is no
// connection.
func (e *endpoint) open(o *opening) {
	var client rueidis.DedicatedClient
	// A hook around rueidis may end this goroutine. Then there is no connection, and the next
	// command begins anew.
	defer func() { e.opened(o, client) }()
	client = e.search(o)
}

// search tries to connect to a server that is not a replica. It stops when the address leads to
// such a server, or no command has wanted the connection for a while. A server that never accepted
// a write is a wrong address, so search tries once. It returns nil if it has found no server.
func (e *endpoint) search(o *opening) rueidis.DedicatedClient {
	client, _ := e.dial(mostStale)
	var tries wait.Backoff
	for client == nil && e.wanted() {
		o.hasTried()
		pause := time.NewTimer(tries.Next())
		select {
		case <-pause.C:
			client, _ = e.dial(1)
		case <-e.ended:
			pause.Stop()
		}
	}
	return client
}

// wanted reports whether to go on trying to open a private connection.
func (e *endpoint) wanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed && time.Since(e.asked) <= askedFor && e.wrote.Load()
}

// opened ends an opening with the connection that it has found, or nil.
func (e *endpoint) opened(o *opening, client rueidis.DedicatedClient) {
	e.mu.Lock()
	unwanted, moved := client != nil && e.closed, false
	switch {
	case client == nil:
		e.pause = time.Now().Add(openTimeout)
	case !unwanted:
		e.current, moved, e.demoted = &private{client: client}, e.demoted, false
		e.left.Store(true)
	}
	e.opening = nil
	close(o.over)
	e.mu.Unlock()
	o.hasTried()
	if unwanted {
		client.Close()
	}
	if moved {
		e.moved()
	}
}

// dial returns a dedicated connection to a server that is not a replica, and a function that
// returns the connection to the pool. It returns nil if the first connections of the pool are lost
// or lead to replicas.
func (e *endpoint) dial(most int) (client rueidis.DedicatedClient, release func()) {
	for range most {
		client, release = e.Client.Dedicate()
		use, again := examine(client)
		if use {
			return client, release
		}
		if !again {
			break
		}
	}
	return nil, nil
}

// examine asks a dedicated connection whether it can be used, and closes it if not. In that
// case, again reports whether the pool's next connection is worth a try.
func examine(client rueidis.DedicatedClient) (use, again bool) {
	defer func() { // even if a hook around rueidis ends this goroutine
		if !use {
			client.Close()
		}
	}()
	replica, err := isReplica(client)
	if err != nil {
		return false, connectionLost(rediserr.Classify(err))
	}
	return !replica, true
}

// Dedicate returns a connection of the pool, for messages, because a replica does not reject
// SUBSCRIBE. Dedicate blocks like Dedicate of rueidis, and while endpoint opens a private
// connection, because commands need the pool's next connection more than messages do.
func (e *endpoint) Dedicate() (rueidis.DedicatedClient, func()) {
	e.mu.Lock()
	o := e.opening
	e.mu.Unlock()
	if o != nil {
		select {
		case <-o.over:
		case <-e.ended:
		}
	}
	if e.left.Load() {
		client, release := e.dial(mostStale)
		if client != nil {
			return client, release
		}
	}
	return e.Client.Dedicate()
}

// Dedicated calls fn with a connection of the pool, and blocks like Dedicated of rueidis.
func (e *endpoint) Dedicated(fn func(rueidis.DedicatedClient) error) error {
	return e.Client.Dedicated(func(client rueidis.DedicatedClient) error {
		return fn(dedicated{client, e})
	})
}

// dedicated is a connection that endpoint closes once its server has rejected a write, because the
// next connection of the pool may lead to another server.
type dedicated struct {
	rueidis.DedicatedClient
	of *endpoint
}

// Follow returns false, because the command cannot be sent again on this connection.
func (d dedicated) Follow(ctx context.Context) bool {
	d.Close()
	d.of.Follow(ctx)
	return false
}

// isReplica asks a server whether it is a replica. A server that does not reply to that counts as a
// master.
func isReplica(client rueidis.DedicatedClient) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	result := client.Do(ctx, client.B().Arbitrary("HELLO").Build())
	if err := result.NonRedisError(); err != nil {
		return false, err
	}
	about, _ := result.AsMap() // nil if the server does not know the command
	role := about["role"]
	name, _ := role.ToString()
	return strings.EqualFold(name, "slave") || strings.EqualFold(name, "replica"), nil
}

// close closes the private connection. Later commands still work, each on its own connection.
func (e *endpoint) close() {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.ended)
	}
	if p := e.current; p != nil {
		e.leave()
		if p.users == 0 { // otherwise the last user closes the connection
			e.work.Go(p.client.Close)
		}
	}
	e.mu.Unlock()
	e.work.Wait()
}
