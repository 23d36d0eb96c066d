package suite

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// A Wire is between a party and its servers. It loses or delays what they reply to scripts that
// they have executed.
type Wire struct {
	mu   sync.Mutex
	lose int                   // guarded by mu; how many replies to scripts are still to be lost
	cut  bool                  // guarded by mu; whether new connections are refused
	pass chan struct{}         // guarded by mu; closed unless replies are held back
	stop bool                  // guarded by mu; whether requests are held back with the replies
	ends map[*wireEnd]struct{} // guarded by mu; the open connections
}

// PartyOnWire is Party with a wire. The party's servers know its scripts. It does not introduce
// itself to them, because that would be a script as well.
func (e *Env) PartyOnWire(t *testing.T, k Kind, options ...func(*rlock.Options)) (*Party, *Wire) {
	t.Helper()
	w := &Wire{pass: make(chan struct{}), ends: make(map[*wireEnd]struct{})}
	close(w.pass)
	options = append(options, func(o *rlock.Options) { o.Anonymous = true })
	p := e.party(t, options, w.use, func(o *rueidis.ClientOption) {
		// Until two commands have overlapped, rueidis sends a command only after the reply to the one
		// before. A MultiLock sends the commands of its parts together.
		o.AlwaysPipelining = k.Name == "multilock"
	})
	t.Cleanup(func() { // before the clients are closed
		w.Lose(0)
		w.Pass()
		w.Mend()
	})
	p.NodeTimeout = 5 * time.Second
	warm(t, p, k)
	e.RequireNothingLeft(t)
	e.settle()
	return p, w
}

// settle waits until no reply is due to a script that was sent, for example by the last master of a
// RedLock. Replies must not be held back.
func (w *Wire) settle(t *testing.T, e *Env) {
	t.Helper()
	locktest.Eventually(t, func() bool { return !w.due() }, "a reply is due")
	e.settle()
}

// due reports whether a reply to a script is due.
func (w *Wire) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for end := range w.ends {
		end.mu.Lock()
		script := end.script
		end.mu.Unlock()
		if script {
			return true
		}
	}
	return false
}

// Lose has the wire lose the next n replies to scripts, with their connections.
func (w *Wire) Lose(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = n
}

// ToLose returns how many replies are still to be lost.
func (w *Wire) ToLose() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lose
}

// Hold holds all replies back until Pass.
func (w *Wire) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass = make(chan struct{})
}

// Stop holds everything back until Pass, as if the party's process were stopped.
func (w *Wire) Stop() {
	w.Hold()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = true
}

// Pass ends Hold and Stop.
func (w *Wire) Pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = false
	select {
	case <-w.pass:
	default:
		close(w.pass)
	}
}

// Break breaks all connections, with the replies that are held back.
func (w *Wire) Break() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for end := range w.ends {
		end.Conn.Close()
		close(end.broken)
		delete(w.ends, end)
	}
}

// Cut breaks all connections and refuses new ones until Mend.
func (w *Wire) Cut() {
	w.mu.Lock()
	w.cut = true
	w.mu.Unlock()
	w.Break()
}

// Mend ends Cut.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// use has a client with these options dial through the wire.
func (w *Wire) use(o *rueidis.ClientOption) {
	dial := o.DialCtxFn
	if dial == nil {
		dial = func(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to)
		}
	}
	o.PipelineMultiplex = -1 // so that scripts have one connection, and it is the one that is lost
	// While the reply to a PING of rueidis is held back, rueidis may send nothing else.
	o.Dialer.KeepAlive = -1
	o.DialCtxFn = func(
		ctx context.Context, to string, d *net.Dialer, c *tls.Config,
	) (net.Conn, error) {
		w.mu.Lock()
		cut := w.cut
		w.mu.Unlock()
		if cut {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		conn, err := dial(ctx, to, d, c)
		if err != nil {
			return nil, err
		}
		end := &wireEnd{Conn: conn, wire: w, broken: make(chan struct{})}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends[end] = struct{}{}
		return end, nil
	}
}

// wireEnd is the party's end of a connection.
type wireEnd struct {
	net.Conn
	wire     *Wire
	broken   chan struct{} // closed with the connection
	mu       sync.Mutex
	script   bool      // guarded by mu; whether the reply to a script is due
	deadline time.Time // guarded by mu; of reading
}

func (c *wireEnd) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("EVAL")) {
		c.mu.Lock()
		c.script = true
		c.mu.Unlock()
	}
	c.wire.mu.Lock()
	stop, pass := c.wire.stop, c.wire.pass
	c.wire.mu.Unlock()
	if stop {
		if err := c.wait(pass); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// wait waits until pass is closed, or it is too late.
func (c *wireEnd) wait(pass <-chan struct{}) error {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	var late <-chan time.Time
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	select {
	case <-pass:
		return nil
	default:
	}
	select {
	case <-pass:
		return nil
	case <-late:
		return os.ErrDeadlineExceeded
	case <-c.broken:
		return syscall.ECONNRESET
	}
}

func (c *wireEnd) SetDeadline(at time.Time) error {
	c.mu.Lock()
	c.deadline = at
	c.mu.Unlock()
	return c.Conn.SetDeadline(at)
}

func (c *wireEnd) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	script := c.script
	c.script = false
	c.mu.Unlock()
	if err != nil {
		return n, err
	}
	c.wire.mu.Lock()
	executed := script && !bytes.Contains(p[:n], []byte("NOSCRIPT"))
	pass, lost := c.wire.pass, executed && c.wire.lose > 0
	if lost {
		c.wire.lose--
	}
	c.wire.mu.Unlock()
	if lost {
		c.Close()
		return 0, syscall.ECONNRESET
	}
	if err := c.wait(pass); err != nil {
		return 0, err
	}
	return n, nil
}

func (c *wireEnd) Close() error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if _, open := c.wire.ends[c]; open {
		delete(c.wire.ends, c)
		close(c.broken)
	}
	return c.Conn.Close()
}
