package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

// Calls sends the commands of a client. All methods are safe for concurrent use.
//
// Start reading at [Do]. call.go has the commands that callers send, from [Calls.Begin] to
// [Call.End], and the context of all commands. worker.go has the commands that workers send.
//
// A caller sends its command itself, with a [Call] as its context. The context ends when the budget
// of the caller ends or the command has taken its timeout. rueidis then returns at once and keeps
// the connection. A call allocates nothing, because calls are recycled and share one timer.
//
// Only two things could block a caller for longer: a dial, which rueidis shares between callers,
// and a connection with a full queue. So a worker sends the command, and the caller waits for the
// worker, if
//   - no reply came within the last 100 ms, on a cluster from the [Node] of the lock, or the
//     connection turns out to be lost;
//   - the lock is at another node of the cluster by now, or the command is for several locks or
//     neither acquires nor releases, because the client of the cluster knows the way;
//   - a command of a worker, [Calls.WhenIdle] or [Undo] dials, because rueidis would let the caller
//     wait for that dial. Rarely rueidis still does so, if the dial began a moment later, if
//     another command dials, for example of the application or a RedLock, or if the dial does not
//     come from a net.Dialer;
//   - very many commands are under way, and then each [Kind] of command has its own limit;
//   - a caller was blocked nevertheless within the last minute, or several callers left without a
//     reply. Their commands stay in the queue of rueidis until that connection replies, while other
//     connections may work;
//   - the caller has little time left, because such callers leave often, and a worker learns the
//     outcome.
//
// Until two commands overlap, a worker also sends each command whose caller may leave before its
// timeout. If the caller sent the command, rueidis would start to pipeline on that connection for
// good, and pipelining slows down a process that sends one command at a time.
type Calls struct {
	group   *wait.Group
	timeout time.Duration
	began   time.Time
	ready   func(context.Context) error // called before each command; nil without a cluster
	onLost  func()                      // called when a command lost its connection; or nil
	closed  chan struct{}               // a closed channel

	// These are nil without a cluster.
	nodeOf   func(lock string) *Node // see Transport.Direct
	outdated func() bool             // the topology may be read again
	read     func(context.Context)   // reads it
	reading  atomic.Bool             // a task reads it
	closing  <-chan struct{}         // closed when the client begins to close

	replied      replies
	workersUntil atomic.Int64 // until then workers send all commands, in ns since began
	dials        atomic.Int64 // the dials in progress by workers and WhenIdle

	outage     outage               // of the connections that callers share
	pool       outage               // of dedicated connections, for which a command may wait
	gates      [kinds]*outage       // the outage of a kind; on a cluster no outage begins
	places     [kinds]chan struct{} // free places for commands of workers; nil without a limit
	recycled   sync.Pool            // of *Call
	deliveries sync.Pool            // of *delivery
	timer      *time.Timer          // runs sweep

	mu         sync.Mutex
	underway   Call      // the head of a ring of calls, oldest first; guarded by mu
	count      int       // of calls in the ring; guarded by mu
	workers    int       // commands of workers under way on the shared connections; guarded by mu
	sweepAt    time.Time // when the timer fires; zero if it is not set; guarded by mu
	overlapped bool      // Begin has seen another command under way; guarded by mu
	abandoned  int       // calls that ended without a reply, since abandonedAt; guarded by mu
	// abandonedAt is when the first of these calls ended, at most workersOnlyFor ago; guarded by mu.
	abandonedAt time.Time
	// idleCommand is closed when the command of WhenIdle has ended. It is nil without such a command;
	// guarded by mu.
	idleCommand chan struct{}
}

// recentReply limits how long a reply shows that the connection is up.
const recentReply = 100 * time.Millisecond

// NewCalls returns the calls of a client whose tasks are in group. timeout bounds each command. For
// a cluster, Calls calls ready before each command of a worker, for example [Transport.Ready]. For
// any other server, ready is nil.
func NewCalls(group *wait.Group, timeout time.Duration, ready func(context.Context) error) *Calls {
	c := &Calls{group: group, timeout: timeout, began: time.Now(), closed: make(chan struct{}),
		ready: ready}
	c.replied.begin(c.began)
	close(c.closed)
	c.outage.shared = true
	for kind := range c.gates { // each node of a cluster would need a gate of its own
		c.gates[kind] = &c.outage
	}
	c.gates[Apart] = &c.pool
	c.underway.prev, c.underway.next = &c.underway, &c.underway
	c.deliveries.New = func() any {
		return &delivery{commandContext: commandContext{calls: c}}
	}
	c.recycled.New = func() any {
		return &Call{commandContext: commandContext{calls: c, done: make(chan struct{})}}
	}
	c.timer = time.AfterFunc(time.Hour, c.sweep)
	c.timer.Stop()
	if ready == nil { // a node that hangs must not take up the places of others
		c.places = newPlaces()
	}
	return c
}

// Do sends a command from the caller's goroutine if the command cannot block that goroutine, and
// otherwise like [SendByWorker].
func Do[T any](c *Calls, kind Kind, b *wait.Budget,
	command func(context.Context) (T, error), late func(T, error),
) (T, State, error) {
	var before error
	if call := c.Begin(b, time.Now(), ""); call != nil {
		value, state, err := Send(call, command)
		if kind.resendable() && Lost(err) {
			before = err
		} else if state != NotSent {
			return value, state, err
		}
	}
	value, state, err := SendByWorker(c, kind, b, struct{}{},
		func(_ struct{}, ctx context.Context) (T, error) { return command(ctx) },
		func(_ struct{}, value T, err error) { late(value, Resent(before, err)) })
	err = Resent(before, err)
	if state == NotExecuted {
		state = StateOf(err)
	}
	return value, state, err
}

// OnLost sets the function that Calls calls when a command loses its connection, or dials, perhaps
// to replace a lost connection. The function must not block. Call OnLost before the first command.
func (c *Calls) OnLost(f func()) { c.onLost = f }

// OnCluster lets callers send commands to the nodes of a cluster. nodeOf returns the node of a
// lock, as [Transport.Direct] does. If a caller has not reached the node, Calls reads the topology
// again in the background. outdated says whether that is due, and must not block. The end of
// closing cancels the read. Call OnCluster before the first command.
func (c *Calls) OnCluster(closing <-chan struct{}, nodeOf func(lock string) *Node,
	outdated func() bool, read func(context.Context),
) {
	c.closing, c.nodeOf, c.outdated, c.read = closing, nodeOf, outdated, read
}

// moved reads the topology again if that is due. It does not block.
func (c *Calls) moved() {
	if c.outdated == nil || !c.outdated() || !c.reading.CompareAndSwap(false, true) {
		return
	}
	if !c.group.Go(c.readTopology) { // the client is closed
		c.reading.Store(false)
	}
}

func (c *Calls) readTopology() {
	defer c.reading.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	go func() {
		select {
		case <-c.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	c.read(ctx)
}

func (c *Calls) reportLost() {
	if c.onLost != nil {
		c.onLost()
	}
}

// recordReply records whether a command sent at the given time got a reply. node is the node of a
// cluster to which the caller sent the command itself, or nil.
func (c *Calls) recordReply(node *Node, sent time.Time, outcome State) {
	if outcome == Unconfirmed {
		c.reportLost()
	}
	c.replied.record(sent, outcome)
	if node != nil {
		node.record(sent, outcome)
	}
}

// Quiet reports whether no reply has come for long, so that a proxy may have closed the
// connections.
func (c *Calls) Quiet() bool {
	return c.replied.age(time.Now()) > 10*recentReply
}

// Kind says which capacity a command uses. Acquisitions cannot use up the capacity for held locks,
// because a held lock must not be lost while other locks are hard to get. Releases cannot use up
// the capacity of renewals, because workers keep their places while a connection of rueidis gives
// no reply.
type Kind uint8

// The kinds of commands.
const (
	Acquire Kind = iota // acquires or inspects a lock; may be sent again
	Renew               // renews held locks for the watchdog; may be sent again
	Keep                // extends a held lock; may be sent again
	Release             // releases a held lock, with the capacity of Keep
	Apart               // has a dedicated connection, perhaps for long
	undo                // removes what an earlier command has left
	kinds
)

// resendable reports whether a command whose connection was lost may be sent again at once. A
// release may not, because the second reply could say that the owner did not hold the lock, or that
// another waiter got the lock.
func (k Kind) resendable() bool { return k == Acquire || k == Renew || k == Keep }

// These limit the commands of workers under way, by kind. Without mostApart, they add up to 992
// with mostUnderway. A worker keeps its place after its caller has left, for as long as rueidis
// waits for a reply.
const mostAcquiring, mostRenewing, mostKeeping, mostUndoing, mostApart = 240, 96, 144, 64, 384

// newPlaces returns the free places for commands of workers, by kind.
func newPlaces() (places [kinds]chan struct{}) {
	for kind, most := range map[Kind]int{
		Acquire: mostAcquiring, Renew: mostRenewing, Keep: mostKeeping, Apart: mostApart,
		undo: mostUndoing,
	} {
		places[kind] = make(chan struct{}, most)
		for range most {
			places[kind] <- struct{}{}
		}
	}
	places[Release] = places[Keep]
	return places
}

// State is the outcome of a command.
type State uint8

// The outcomes of a command. After an outcome of [StateOf] above NotExecuted, the server may have
// executed the command.
const (
	Executed    State = iota // the server executed it
	NotExecuted              // the server did not execute it
	Unconfirmed              // its connection was lost; the server executed it, or never will
	Abandoned                // nobody waits for its reply; the server may execute it at any time
	CallerLeft               // its caller left; a callback gets the outcome
	NotSent                  // its caller would have had to dial first
)

// StateOf returns the outcome of a command with the given error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Executed
	case rediserr.ClassOf(err) != rediserr.ClassUnknown:
		return NotExecuted
	case errors.Is(Unexplained(err), ErrNoReply): // rueidis gave up, or the caller did
		return Abandoned
	}
	return Unconfirmed
}

// Lost reports whether a command lost its connection, and may have been executed.
func Lost(err error) bool { return connectionLost(err) && StateOf(err) == Unconfirmed }

// connectionLost reports whether err says that a connection was lost, without a reply to the
// command.
func connectionLost(err error) bool {
	return err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, rueidis.ErrClosing))
}

// ErrNoReply is the error of a command whose caller left before the reply.
var ErrNoReply = &rediserr.Error{Class: rediserr.ClassUnknown,
	Message: "no reply from Redis in time",
	Advice: "check that the server is running and not busy, and whether the port uses TLS " +
		"(rueidis.ClientOption.TLSConfig)"}

// NoReply returns [ErrNoReply]. If the try before had an error, NoReply adds it, because it says
// more.
func NoReply(before error) error {
	if before == nil || errors.Is(before, ErrNoReply) {
		return ErrNoReply
	}
	return fmt.Errorf("%w; before that: %w", ErrNoReply, before)
}

// ErrNotSent is the error of a command whose caller left before there was room to send it.
var ErrNotSent = &rediserr.Error{Class: rediserr.ClassTemporary,
	Message: "the command was not sent, because too many commands are under way; retry later"}

// Unexplained replaces errors about deadlines, which come from rueidis or from another command on
// the connection.
func Unexplained(err error) error {
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) &&
		rediserr.ClassOf(err) == rediserr.ClassUnknown {
		return ErrNoReply
	}
	return err
}

// unreached returns the error of a command that was not sent, because the server closed the
// connection before, or did not greet.
func unreached(err error) error {
	e := &rediserr.Error{Class: rediserr.ClassTemporary,
		Message: "cannot connect to Redis: " + err.Error(), Err: err,
		Advice: "the server or a proxy closed the connection first; raise maxclients if the server has " +
			"no connection left, or set rueidis.ClientOption.TLSConfig if the server uses TLS"}
	var cause *rediserr.Error
	if errors.As(err, &cause) {
		e.Message = "cannot connect to Redis: " + cause.Message
	}
	switch {
	case cause != nil && errors.Is(err, rueidis.ErrClosing):
		e.Message, e.Advice = cause.Message, cause.Advice
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Advice = "the server accepts connections but does not reply; check whether it is busy"
	}
	return e
}
