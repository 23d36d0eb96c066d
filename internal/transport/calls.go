package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
// [Do] is the way in. A command that its caller sends is in call.go, from [Calls.Begin] to
// [Call.End], and so is the context of all commands. worker.go has what a worker sends.
//
// A caller sends its command itself, with a [Call] as its context. That context ends when the
// budget of the caller ends or the command has taken its timeout. rueidis then returns at once and
// keeps the connection. That allocates nothing: calls are recycled, and they share one timer.
//
// Only two things could block a caller for longer: a dial, which rueidis shares between callers,
// and a connection with a full queue. The caller waits for a worker that sends the command, if
//   - the server is a cluster: the reply of one node says nothing about the others;
//   - no reply came within the last 100 ms, or the connection turns out to be lost;
//   - a command of a worker, [Calls.WhenIdle] or [Undo] dials: rueidis would let the caller
//     wait for that dial. Rarely it does so all the same: for a dial that began a moment later, or
//     by another command, as of the application or a RedLock, or that is not a net.Dialer's;
//   - very many commands are under way, and then each [Kind] of command has a limit of its own;
//   - a caller was blocked all the same within the last minute, or several left without a reply:
//     what they sent stays in rueidis's queue for as long as that connection gives no reply, while
//     others may work;
//   - the caller has little time left: such callers leave often, and a worker learns the outcome.
//
// Until two commands overlap, a worker also sends each command whose caller may leave before its
// timeout. If the caller sent it, rueidis would start to pipeline on that connection, for good,
// which slows down a process that sends one command at a time.
type Calls struct {
	group   *wait.Group
	timeout time.Duration
	began   time.Time
	ready   func(context.Context) error // called before each command; nil without a cluster
	onLost  func()                      // called when a command lost its connection; or nil
	closed  chan struct{}               // a closed channel

	replied      atomic.Int64 // when about the latest command with a reply was sent, in ns since began
	workersUntil atomic.Int64 // until then workers send all commands, in ns since began
	dials        atomic.Int64 // the dials in progress by workers and WhenIdle

	outage     outage               // of the connections that callers share
	pool       outage               // of connections of their own, which a command may wait for
	gates      [kinds]*outage       // the outage that concerns a kind; none begins on a cluster
	places     [kinds]chan struct{} // free places for commands of workers; nil without a limit
	recycled   sync.Pool            // of *Call
	deliveries sync.Pool            // of *delivery
	timer      *time.Timer          // runs sweep

	mu         sync.Mutex
	underway   Call      // the head of a ring of calls, oldest first; guarded by mu
	count      int       // of them; guarded by mu
	workers    int       // commands of workers under way on the shared connections; guarded by mu
	sweepAt    time.Time // when the timer fires; zero if it is not set; guarded by mu
	overlapped bool      // Begin has seen another command under way; guarded by mu
	abandoned  int       // calls that ended without a reply, since abandonedAt; guarded by mu
	// abandonedAt is when the first of them ended, at most workersOnlyFor ago; guarded by mu.
	abandonedAt time.Time
	// idleCommand is closed when the command of WhenIdle has ended; nil without one; guarded by mu.
	idleCommand chan struct{}
}

// recentReply limits how long a reply shows that the connection is up.
const recentReply = 100 * time.Millisecond

// NewCalls returns the calls of a client whose tasks are in group. timeout bounds each command.
// ready is that of a cluster, such as [Transport.Ready], and is called before each command; nil for
// any other server. With it workers send all commands: a reply of one node says nothing about the
// others.
func NewCalls(group *wait.Group, timeout time.Duration, ready func(context.Context) error) *Calls {
	c := &Calls{group: group, timeout: timeout, began: time.Now(), closed: make(chan struct{}),
		ready: ready}
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
	c.recordReply(c.began, NotSent)
	if ready != nil { // a node that hangs must not hold up commands to others
		c.workersUntil.Store(math.MaxInt64)
		return c
	}
	c.places = newPlaces()
	return c
}

// Do sends a command from the caller's goroutine if that cannot block it, or else as [Detach] does.
func Do[T any](c *Calls, kind Kind, b *wait.Budget,
	command func(context.Context) (T, error), late func(T, error),
) (T, State, error) {
	var before error
	if call := c.Begin(b, time.Now()); call != nil {
		value, state, err := runCall(call, command)
		if kind.resendable() && Lost(err) {
			before = err
		} else if state != NotSent {
			return value, state, err
		}
	}
	value, state, err := Detach(c, kind, b, struct{}{},
		func(_ struct{}, ctx context.Context) (T, error) { return command(ctx) },
		func(_ struct{}, value T, err error) { late(value, Resent(before, err)) })
	err = Resent(before, err)
	if state == Refused {
		state = StateOf(err)
	}
	return value, state, err
}

// OnLost sets what is called when a command loses its connection, or dials one, perhaps instead of
// one that was lost before. It must not block. Call OnLost before the first command.
func (c *Calls) OnLost(f func()) { c.onLost = f }

func (c *Calls) reportLost() {
	if c.onLost != nil {
		c.onLost()
	}
}

// recordReply records whether a command sent at the given time got a reply. It does not write after
// each reply, which would slow down all other processors that send.
func (c *Calls) recordReply(sent time.Time, outcome State) {
	if outcome == Unconfirmed {
		c.reportLost()
	}
	at := int64(math.MinInt64 / 2) // long before any reply
	if outcome == Executed || outcome == Refused {
		at = int64(sent.Sub(c.began))
	}
	if at < 0 || at > c.replied.Load()+int64(recentReply/10) {
		c.replied.Store(at)
	}
}

// Quiet reports whether no reply has come for long: a proxy may have closed the connections.
func (c *Calls) Quiet() bool {
	return time.Since(c.began)-time.Duration(c.replied.Load()) > 10*recentReply
}

// Kind says whose capacity a command uses. Acquisitions cannot use up that of commands for what is
// held: a lock must not be lost because others are hard to get. Nor because others are hard to
// release: while one of rueidis's connections gives no reply, workers keep their places for it.
type Kind uint8

// The kinds of commands.
const (
	Acquire Kind = iota // it acquires a lock, or inspects one; it may be sent again
	Renew               // the watchdog renews what is held; it may be sent again
	Keep                // it extends what is held; it may be sent again
	Release             // it releases what is held, with the capacity of Keep
	Apart               // it has a connection of its own, perhaps for long
	undo                // it removes what an earlier command has left
	kinds
)

// resendable reports whether a command whose connection was lost may be sent again at once. A
// release may not: the second reply could say that nothing was held, or that another waiter got the
// lock.
func (k Kind) resendable() bool { return k == Acquire || k == Renew || k == Keep }

// These limit how many commands workers have under way at a time, by kind. With the most of callers
// they are 992. A worker keeps its place after its caller has left, for as long as rueidis waits
// for a reply.
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

// The outcomes of a command. [StateOf] returns one after Refused if it may have been executed.
const (
	Executed    State = iota // the server executed it
	Refused                  // the server did not execute it
	Unconfirmed              // its connection was lost: it was executed, or never will be
	Abandoned                // nobody waits for its reply: it may be executed at any time
	Detached                 // its caller left: a callback gets the outcome
	NotSent                  // its caller would have had to dial first
)

// StateOf returns the outcome of a command with the given error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Executed
	case rediserr.ClassOf(err) != rediserr.ClassUnknown:
		return Refused
	case errors.Is(Unexplained(err), ErrNoReply): // rueidis gave up, or the caller did
		return Abandoned
	}
	return Unconfirmed
}

// Lost reports whether a command may have been executed, but its connection was lost.
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

// NoReply returns [ErrNoReply], with the error of the try before, which says more, if there is one.
func NoReply(before error) error {
	if before == nil || errors.Is(before, ErrNoReply) {
		return ErrNoReply
	}
	return fmt.Errorf("%w; before that: %w", ErrNoReply, before)
}

// ErrNotSent is the error of a command whose caller left before there was room to send it.
var ErrNotSent = &rediserr.Error{Class: rediserr.ClassTemporary,
	Message: "the command was not sent, because too many commands are under way; retry later"}

// Unexplained replaces errors about deadlines: of other commands on the connection, or rueidis's.
func Unexplained(err error) error {
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) &&
		rediserr.ClassOf(err) == rediserr.ClassUnknown {
		return ErrNoReply
	}
	return err
}

// unreached returns the error of a command that was not sent, because the server closed the
// connection before that, or did not greet.
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
