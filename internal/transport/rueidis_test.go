package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/rediserr"
)

// recorder is a context that records which of its methods are called, in order.
type recorder struct {
	done    chan struct{}
	endless bool // it has a deadline, as a [Call] has that nothing but the timeout ends

	mu    sync.Mutex
	calls []string // guarded by mu
}

// The contexts that holdfast sends commands with, as rueidis sees them.
func cancellable() *recorder    { return &recorder{done: make(chan struct{})} }
func withDeadline() *recorder   { return &recorder{done: make(chan struct{}), endless: true} }
func neverCancelled() *recorder { return &recorder{} }

func (r *recorder) record(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, method)
}

func (r *recorder) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recorder) Err() error {
	r.record("Err")
	if r.done != nil {
		select {
		case <-r.done:
			return context.DeadlineExceeded
		default:
		}
	}
	return nil
}

func (r *recorder) Done() <-chan struct{} {
	r.record("Done")
	return r.done
}

func (r *recorder) Deadline() (time.Time, bool) {
	r.record("Deadline")
	return time.Now().Add(timeout), r.endless
}

func (r *recorder) Value(any) any {
	r.record("Value")
	return nil
}

// rueidisBeside is a real rueidis client with one connection to a scripted server.
type rueidisBeside struct {
	server *fakeredis.Server
	client rueidis.Client
	dial   func(context.Context) error // called by each dial unless it is nil; fails it
}

// send sends a command as holdfast does: rueidis does not send a script again by itself.
func (r *rueidisBeside) send(ctx context.Context) error {
	script := r.client.B().Evalsha().Sha1("script").Numkeys(0).Build()
	return r.client.Do(ctx, script).Error()
}

// begin sends a command whose reply nobody waits for yet, and returns once all of rueidis is
// blocked. outcome returns the error of the command.
func (r *rueidisBeside) begin(ctx context.Context) (outcome func() error) {
	ended := make(chan error, 1)
	go func() { ended <- r.send(ctx) }()
	synctest.Wait()
	return func() error { return <-ended }
}

// pipeline makes rueidis pipeline on the connection from now on.
func (r *rueidisBeside) pipeline(t *testing.T) {
	t.Helper()
	require.NoError(t, r.send(cancellable()))
	synctest.Wait()
}

// lose has the server close the connection, and rueidis notice that if it pipelines.
func (r *rueidisBeside) lose() {
	r.server.Disconnect()
	synctest.Wait()
}

// The contexts of this package conclude the fate of a command from the methods that rueidis calls:
// see the phases in call.go. Nothing but this test binds rueidis to that order. If it fails after
// an upgrade of rueidis, correct what it says before you correct the order here.
func TestRueidisCallsTheContextInThisOrder(t *testing.T) {
	for name, of := range map[string]struct {
		context func() *recorder
		// run sends the command with ctx and returns when it has ended.
		run    func(t *testing.T, r *rueidisBeside, ctx *recorder)
		order  []string
		relies string
	}{
		"idle connection, the timeout is the only end": {
			withDeadline, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				require.NoError(t, r.send(ctx))
			},
			[]string{"Err", "Deadline"},
			"Call.Deadline notes that the command is sent; rueidis does not start to pipeline for it",
		},
		"idle connection, the caller may leave": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				require.NoError(t, r.send(ctx))
			},
			[]string{"Err", "Deadline", "Done", "Done"},
			"Err before Done says that rueidis has a connection, so Call.Done does not end the call",
		},
		"idle connection, never cancelled": {
			neverCancelled, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				require.NoError(t, r.send(ctx))
			},
			[]string{"Err", "Deadline", "Done"},
			"Done counts no dial of a worker, and a nil channel does not make rueidis pipeline",
		},
		"the first other command is in flight": {
			withDeadline, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.server.Pause()
				first := r.begin(withDeadline())
				second := r.begin(ctx)
				r.server.Resume()
				require.NoError(t, first())
				require.NoError(t, second())
			},
			[]string{"Err", "Done"},
			"Call.Done notes that the command is sent: nothing asks for the deadline any more",
		},
		"pipelining": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.server.Pause()
				other := r.begin(cancellable())
				command := r.begin(ctx)
				require.Equal(t, []string{"Err", "Done"}, ctx.recorded(),
					"Call.Done does not run before the reply")
				r.server.Resume()
				require.NoError(t, other())
				require.NoError(t, command())
			},
			[]string{"Err", "Done"},
			"Call.Done runs once per command, after it was queued: there callers let others send",
		},
		"the caller leaves": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.server.Pause()
				command := r.begin(ctx)
				close(ctx.done)
				require.ErrorIs(t, command(), context.DeadlineExceeded)
				r.server.Resume()
				require.NoError(t, r.send(cancellable()), "rueidis has closed the connection")
			},
			[]string{"Err", "Done", "Err"},
			"rueidis returns Call.Err once the channel of Call.Done is closed, and keeps the connection",
		},
		"dial": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.lose()
				var dialer net.Dialer // what rueidis dials with, unless its options say otherwise
				dialer.Timeout = time.Second
				before := 0
				r.dial = func(dial context.Context) error {
					_, _ = dialer.DialContext(dial, "tcp", "127.0.0.1:1")
					before = len(ctx.recorded())
					return nil
				}
				require.NoError(t, r.send(ctx))
				require.Contains(t, ctx.recorded()[:before], "Done", "the dial has not called Done")
				ctx.calls = firstCalls(ctx.calls)
			},
			[]string{"Deadline", "Done", "Value", "Err"},
			"Done before Err says that rueidis dials: Done ends the dial of a caller, and counts a worker's",
		},
		"dial that fails": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.lose()
				failure := errors.New("failed")
				r.dial = func(dial context.Context) error {
					_ = dial.Done() // as a net.Dialer does
					return failure
				}
				require.ErrorIs(t, r.send(ctx), failure)
			},
			[]string{"Done", "Err"},
			"after a dial that failed, only Err is called, so the phase is still that of the dial",
		},
		"the dial of another command": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				dialed := duringDial(t, r, nil)
				command := r.begin(ctx)
				require.Empty(t, ctx.recorded(),
					"rueidis asks the context while another command dials")
				close(dialed)
				require.NoError(t, command())
				// The rest depends on which of the two commands is the first on the connection.
				ctx.calls = ctx.calls[:1]
			},
			[]string{"Err"},
			"rueidis waits for the dial of another command without asking the context: see Calls.dials",
		},
		"the dial of another command fails": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				failure := errors.New("failed")
				dialed := duringDial(t, r, failure)
				command := r.begin(ctx)
				close(dialed)
				require.ErrorIs(t, command(), failure)
			},
			[]string{"Err"},
			"Err alone says that there was no connection, so the command was not sent",
		},
		"full queue": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.server.Pause()
				places := []func() error{r.begin(cancellable()), r.begin(cancellable())}
				command := r.begin(ctx)
				require.Equal(t, []string{"Err"}, ctx.recorded(),
					"rueidis asks the context for more while the queue is full")
				r.server.Resume()
				for _, outcome := range places {
					require.NoError(t, outcome())
				}
				require.NoError(t, command())
			},
			[]string{"Err", "Done"},
			"a caller cannot leave while the queue of rueidis is full: see mostUnderway",
		},
		"a connection that was closed while idle": {
			withDeadline, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.lose()
				require.True(t, connectionLost(rediserr.Classify(r.send(ctx))))
			},
			[]string{"Err", "Deadline"},
			"rueidis tries to send on it: nobody knows whether the command was executed",
		},
		"the connection is lost before the reply": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.pipeline(t)
				r.server.Pause()
				command := r.begin(ctx)
				r.lose()
				require.True(t, connectionLost(rediserr.Classify(command())))
				r.server.Resume()
			},
			[]string{"Err", "Done"},
			"Done after Err says that the command was perhaps executed",
		},
		"closed client": {
			cancellable, func(t *testing.T, r *rueidisBeside, ctx *recorder) {
				r.client.Close()
				require.ErrorIs(t, r.send(ctx), rueidis.ErrClosing)
			},
			[]string{"Err"},
			"Err alone says that there is no connection any more, so the command was not sent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rueidisBeside{server: fakeredis.New()}
				defer r.server.Close()
				r.server.Handle("EVALSHA", func([]string) any { return fakeredis.Status("OK") })
				options := r.server.ClientOption()
				options.PipelineMultiplex = -1 // one connection
				options.RingScaleEachConn = 1  // a queue with two places
				dial := options.DialCtxFn
				options.DialCtxFn = func(
					ctx context.Context, to string, dialer *net.Dialer, config *tls.Config,
				) (net.Conn, error) {
					if r.dial != nil {
						if err := r.dial(ctx); err != nil {
							return nil, err
						}
					}
					return dial(ctx, to, dialer, config)
				}
				client, err := rueidis.NewClient(options)
				require.NoError(t, err)
				defer client.Close()
				r.client = client
				ctx := of.context()
				of.run(t, r, ctx)
				require.Equal(t, of.order, ctx.recorded(), "rueidis calls the methods of a context in "+
					"another order than holdfast relies on. What does not hold any more: %s.", of.relies)
			})
		})
	}
}

// duringDial returns while another command dials. That dial ends with err once dialed is closed.
func duringDial(t *testing.T, r *rueidisBeside, err error) (dialed chan struct{}) {
	t.Helper()
	r.pipeline(t)
	r.lose()
	dialed = make(chan struct{})
	r.dial = func(context.Context) error {
		<-dialed
		return err
	}
	r.begin(neverCancelled())
	return dialed
}

// firstCalls returns the methods in the order in which each was called first. How often a dial
// calls them is up to the version of Go.
func firstCalls(calls []string) (first []string) {
	for _, method := range calls {
		if !slices.Contains(first, method) {
			first = append(first, method)
		}
	}
	return first
}
