package rlock

import (
	"context"
	"slices"
	"time"
)

// Tracer receives how the locks of a client are acquired. See [Options].Tracer. To receive more,
// also implement [HoldTracer], [WaitTracer], [RenewalTracer], [RoundTracer] or [NodeTracer].
// Package holdfast/otel has a Tracer for OpenTelemetry. Later versions may add fields to the
// structs, and add interfaces.
//
// The client calls methods concurrently. The goroutine of a traced call also calls the methods
// about that call, so a method that blocks delays the call. WaitStart and RoundEnd may also delay
// the calls that wait behind.
//
// A background goroutine of each client calls RenewalEnd and NodeFailed, and HoldEnd for a hold
// whose holder has not released the hold. A method that blocks there delays neither renewals nor
// the end of contexts. Once 4096 calls are waiting, the client drops further calls of RenewalEnd
// and NodeFailed and logs a warning, but never drops HoldEnd. [Client.Close] waits for this
// goroutine until the context of Close ends.
//
// A method should not panic. If a method panics or calls runtime.Goexit, the traced call does the
// same, leaves its queue, and releases in the background what the call has acquired. A panic in the
// background ends the process. A method must not use the traced lock.
//
// A MultiLock or RedLock uses the tracer of the client of its first lock. The client also traces
// the parts of a MultiLock, like all locks. Parts that one command acquires are traced once the
// command has succeeded. For the locks on the nodes of a RedLock, a Tracer receives only renewals
// and failures.
type Tracer interface {
	// AcquireStart is called when a call of Lock, TryLock or Attach begins. The call continues with
	// the returned context, which must derive from ctx.
	AcquireStart(ctx context.Context, d AcquireStart) context.Context
	// AcquireEnd is called before the call returns, with the context from AcquireStart.
	AcquireEnd(ctx context.Context, d AcquireEnd)
}

// HoldTracer is a [Tracer] for holds.
type HoldTracer interface {
	// HoldStart is called for each new hold, right before AcquireEnd and with the same context. The
	// context of the hold derives from the returned context, which must derive from ctx. Without a
	// HoldTracer, the context of the hold derives from the context of the caller.
	//
	// The returned trace receives the end of the hold, unless the trace is nil. The trace should not
	// keep the context, because the client cannot report a dropped hold while its context is
	// reachable.
	HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace)
}

// HoldTrace receives the end of a hold.
type HoldTrace interface {
	// HoldEnd is called once, after the release of the hold, or when the hold ended for another
	// reason.
	HoldEnd(d HoldEnd)
}

// WaitTracer is a [Tracer] for waits. The parts of a MultiLock wait, not the MultiLock.
type WaitTracer interface {
	// WaitStart is called when a caller begins to wait, because the lock is not free or because others
	// wait already. WaitStart is called at most once for each call, with the context from
	// AcquireStart.
	WaitStart(ctx context.Context, d WaitStart)
	// WaitEnd is called after WaitStart, and before HoldStart and AcquireEnd, with the same context.
	WaitEnd(ctx context.Context, d WaitEnd)
}

// RenewalTracer is a [Tracer] for renewals by the watchdog.
type RenewalTracer interface {
	// RenewalEnd is called after each attempt to renew the lease of a lock or of a node of a RedLock.
	RenewalEnd(d RenewalEnd)
}

// RoundTracer is a [Tracer] for the rounds of a RedLock, which asks all nodes in each round.
type RoundTracer interface {
	// RoundEnd is called after each round of a call for a lock, with the context from AcquireStart. A
	// nested call has no rounds.
	RoundEnd(ctx context.Context, d RoundEnd)
}

// NodeTracer is a [Tracer] for failing nodes of RedLocks. The tracer belongs to the client of the
// node.
type NodeTracer interface {
	// NodeFailed is called when a node failed to do what a RedLock asked. A node has not failed if
	// another owner holds the lock there.
	NodeFailed(d NodeFailed)
}

// TracedLock identifies a lock for a [Tracer].
type TracedLock struct {
	Name string
	// Kind is "reentrant", "non-reentrant", "fair", "non-reentrant fair", "fenced", "read", "write",
	// "multilock" or "redlock".
	Kind string
	// Server is Options.Server or the address of the server, or "" for a server without a name. A
	// MultiLock or RedLock has the names of its servers, sorted and joined by commas.
	Server string
}

// AcquireStart describes the start of a call for a lock.
type AcquireStart struct {
	Lock  TracedLock
	Since time.Time     // when the call began
	Wait  time.Duration // [NoWait], [Forever], or the longest wait
	Lease Lease         // [Watchdog], or the lease
}

// AcquireEnd describes the result of a call for a lock.
type AcquireEnd struct {
	Lock TracedLock
	// Err is the error of the call, or nil if the lock was acquired. A [*HeldError] names the holder.
	// After a successful wait, the former holder is not reported.
	Err    error
	How    How           // how it was acquired
	Took   time.Duration // the whole call
	Waited time.Duration // from WaitStart to WaitEnd; 0 without a wait
	// Requests is the number of requests to Redis. For a RedLock, Requests is the number of rounds,
	// and 0 for a nested hold. For a MultiLock, Requests is 0, because its parts report their
	// requests.
	Requests int
}

// How says how a lock was acquired.
type How int

// The ways to acquire a lock.
const (
	NotAcquired How = iota
	Free            // Redis was asked when the lock was free, perhaps after a wait
	HandedOver      // a release by the same client gave it to the waiting caller
	Granted         // a release by another client gave it to the waiting caller, by a message
	Reentered       // the owner held it already
	Attached        // by Client.Attach
)

// String returns the way in words, such as "handed over".
func (h How) String() string {
	names := [...]string{"not acquired", "free", "handed over", "granted", "reentered", "attached"}
	if h < 0 || int(h) >= len(names) {
		return "unknown"
	}
	return names[h]
}

// WaitStart describes the start of a wait.
type WaitStart struct{ Lock TracedLock }

// WaitEnd describes the end of a wait.
type WaitEnd struct {
	Lock   TracedLock
	Waited time.Duration
	// BecameHead is the time when the caller became the first waiter of its process and began to ask
	// Redis, or zero if that never happened.
	BecameHead time.Time
}

// HoldStart describes a new hold.
type HoldStart struct {
	Lock     TracedLock
	Owner    string // as others see it
	Token    int64  // the fencing token; 0 if there is none
	How      How
	Nested   bool // the owner has other holds of the lock
	Deadline time.Time
	Lease    time.Duration // in Redis
	Renewed  bool          // by the watchdog
}

// HoldEnd describes a hold that has ended.
type HoldEnd struct {
	Lock  TracedLock
	Owner string
	// Err is nil if the hold was released or left. Err matches [ErrLost] if the lock was lost, even if
	// only the release found out, and [ErrClosed] if the client was closed. After a failed release,
	// Err is the error of the release, and the lock may stay held until its lease ends.
	Err  error
	Left bool // by Leave or Detach
	// Last reports whether this was the last hold of its acquisition. To count locks, count only last
	// holds.
	Last bool
	Held time.Duration // since the first hold of the acquisition
	// Margin is the time that was left until the deadline when the hold ended, or 0 or less after the
	// deadline.
	Margin time.Duration
	Lease  time.Duration // the latest lease of this hold, which Margin is a part of
}

// RenewalEnd describes an attempt to renew the lease of a lock. If Redis no longer has the lock,
// the end of its holds is reported instead.
type RenewalEnd struct {
	Lock  TracedLock
	Owner string
	// Err is nil, or the reason why the lease was not renewed. The watchdog tries again until the
	// deadline. The first missing reply is reported after a sixth of the lease, and the next after a
	// longer time. A late reply still counts, so the reply is reported as well, unless the lock was
	// released meanwhile.
	Err error
	// Margin is the time that was left until the deadline before this renewal.
	Margin time.Duration
	Lease  time.Duration // which that is a part of
	// Hold is the result of HoldStart for the first hold of the acquisition. Hold is nil for a node of
	// a RedLock, and without a HoldTracer.
	Hold HoldTrace
}

// RoundEnd describes a round of requests to the nodes of a RedLock.
type RoundEnd struct {
	Lock    TracedLock
	Round   int // 1 for the first of the call
	Granted int // the number of nodes that granted the lock
	Want    int // the quorum
	Took    time.Duration
	// Refused has the nodes that did not grant the lock, and the reasons. The reason is a *[HeldError]
	// if another owner holds the lock. A node is missing if the round was decided before the node
	// replied.
	Refused []RefusedNode
}

// RefusedNode is a node of a RedLock that did not grant the lock.
type RefusedNode struct {
	Server string
	Err    error
}

// NodeFailed describes a failure of a node of a RedLock.
type NodeFailed struct {
	Lock   TracedLock // the one on the node
	Server string
	// Operation is the failed operation: "acquire", "extend", "release", or "hold" if the node no
	// longer has the lock.
	Operation string
	Err       error
}

// MultiTracer returns a Tracer that calls each of tracers, in order. MultiTracer skips nil tracers,
// and returns nil if no tracer is left.
func MultiTracer(tracers ...Tracer) Tracer {
	m := multiTracer(slices.DeleteFunc(slices.Clone(tracers), func(t Tracer) bool { return t == nil }))
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

// multiTracer implements all interfaces of tracers. It calls only the tracers that implement an
// interface as well.
type multiTracer []Tracer

// tell calls f with each tracer that implements T.
func tell[T any](m multiTracer, f func(T)) {
	for _, t := range m {
		if t, ok := t.(T); ok {
			f(t)
		}
	}
}

func (m multiTracer) AcquireStart(ctx context.Context, d AcquireStart) context.Context {
	for _, t := range m {
		ctx = t.AcquireStart(ctx, d) //nolint:fatcontext // each tracer adds to it, once
	}
	return ctx
}

func (m multiTracer) AcquireEnd(ctx context.Context, d AcquireEnd) {
	for _, t := range m {
		t.AcquireEnd(ctx, d)
	}
}

func (m multiTracer) WaitStart(ctx context.Context, d WaitStart) {
	tell(m, func(t WaitTracer) { t.WaitStart(ctx, d) })
}

func (m multiTracer) WaitEnd(ctx context.Context, d WaitEnd) {
	tell(m, func(t WaitTracer) { t.WaitEnd(ctx, d) })
}

// multiTrace has the traces of a hold, in the order of the tracers. A tracer without a trace has
// nil.
type multiTrace []HoldTrace

func (m multiTracer) HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace) {
	traces := make(multiTrace, len(m))
	for i, t := range m {
		if t, ok := t.(HoldTracer); ok {
			ctx, traces[i] = t.HoldStart(ctx, d) //nolint:fatcontext // as above
		}
	}
	return ctx, traces
}

// HoldEnd implements [HoldTrace].
func (m multiTrace) HoldEnd(d HoldEnd) {
	for _, t := range m {
		if t != nil {
			t.HoldEnd(d)
		}
	}
}

func (m multiTracer) RenewalEnd(d RenewalEnd) {
	traces, _ := d.Hold.(multiTrace)
	for i, t := range m {
		if t, ok := t.(RenewalTracer); ok {
			d.Hold = nil
			if traces != nil {
				d.Hold = traces[i]
			}
			t.RenewalEnd(d)
		}
	}
}

func (m multiTracer) RoundEnd(ctx context.Context, d RoundEnd) {
	tell(m, func(t RoundTracer) { t.RoundEnd(ctx, d) })
}

func (m multiTracer) NodeFailed(d NodeFailed) {
	tell(m, func(t NodeTracer) { t.NodeFailed(d) })
}
