package transport

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// Calls sends the commands of a client. All methods are safe for concurrent use.
//
// [Do] is the way in. A command that its caller sends is in call.go, from [Calls.Begin] to
// [Call.End]; sweep.go ends the call if it takes too long. worker.go has what a worker sends.
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

	replied      atomic.Int64 // when about the latest command with a reply was sent, in ns since began
	workersUntil atomic.Int64 // until then workers send all commands, in ns since began
	dials        atomic.Int64 // the dials in progress by workers and WhenIdle
	outage       outage       // not used on a cluster, where it would have to be one for each node
	pool         outage       // of connections of their own, for which a command may wait for long
	cluster      bool
	workers      atomic.Int64         // commands of workers under way on the shared connections
	recycled     sync.Pool            // of *Call
	contexts     sync.Pool            // of *withoutCancel
	places       [kinds]chan struct{} // free places for commands of workers; nil without a limit
	timer        *time.Timer          // runs sweep
	closed       chan struct{}        // a closed channel

	mu         sync.Mutex
	underway   Call      // the head of a ring of calls, oldest first; guarded by mu
	count      int       // guarded by mu
	sweepAt    time.Time // when the timer fires; zero if it is not set; guarded by mu
	overlapped bool      // Begin has seen another command under way; guarded by mu
	abandoned  int       // calls that ended without a reply, since abandonedAt; guarded by mu
	// abandonedAt is when the first of them ended, at most workersOnlyFor ago; guarded by mu.
	abandonedAt time.Time

	onLost func() // called when a command lost its connection; nil if nobody asks; constant

	// idleCommand is closed when the command of WhenIdle has ended; nil without one; guarded by mu.
	idleCommand chan struct{}
}

// recentReply limits how long a reply shows that the connection is up.
const recentReply = 100 * time.Millisecond

// NewCalls returns the calls of a client whose tasks are in group. timeout bounds each command. On
// a cluster workers send all commands: a reply of one node says nothing about the others.
func NewCalls(group *wait.Group, timeout time.Duration, cluster bool) *Calls {
	c := &Calls{group: group, timeout: timeout, began: time.Now(), closed: make(chan struct{}),
		cluster: cluster}
	close(c.closed)
	c.outage.shared = true
	c.underway.prev, c.underway.next = &c.underway, &c.underway
	c.contexts.New = func() any { return &withoutCancel{calls: c} }
	c.recycled.New = func() any { return &Call{calls: c, done: make(chan struct{})} }
	c.timer = time.AfterFunc(time.Hour, c.sweep)
	c.timer.Stop()
	c.recordReply(c.began, NotSent)
	if cluster { // a node that hangs must not hold up commands to others
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
