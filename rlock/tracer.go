package rlock

import (
	"context"
	"time"
)

// Tracer hears how a client's locks are acquired: [Options].Tracer. What it hears of besides is up
// to it, by further interfaces that it implements: [HoldTracer], [WaitTracer], [RenewalTracer],
// [RoundTracer] and [NodeTracer]. Later versions may add fields to the structs, and interfaces.
// Package holdfast/otel has a Tracer for OpenTelemetry.
//
// Most methods are called on the goroutine of the call that they are about, so one that blocks
// delays its caller: WaitStart and RoundEnd perhaps while that is first in the queue of its process,
// which delays those behind it, too. What other goroutines find out is told by one goroutine of
// each client in the background: losses, renewals, failed nodes, and what Close releases. So a
// tracer that blocks delays neither a renewal nor the end of a hold's context. While it blocks
// there, renewals and failed nodes beyond the first 4096 that wait are left out, which is logged,
// and Close waits until its context ends.
//
// Methods are called concurrently. They must not panic: a lock that was just acquired would stay
// held, those behind a caller that waits would wait for ever, and in the background the process
// would end. They must not use the lock that they are told about.
//
// A lock that holds others, of package multilock or redlock, has the tracer of the client of the
// first of them. The parts of a MultiLock are told as well, like all locks; a part that shares a
// command with others once it was acquired. The locks on the nodes of a RedLock are not.
type Tracer interface {
	// AcquireStart is called when a call to Lock, TryLock or Attach begins. The call goes on with
	// the context that it returns, which must derive from ctx.
	AcquireStart(ctx context.Context, d AcquireStart) context.Context
	// AcquireEnd is called before that call returns, with the context that AcquireStart returned.
	AcquireEnd(ctx context.Context, d AcquireEnd)
}

// HoldTracer is a [Tracer] that also hears of holds.
type HoldTracer interface {
	// HoldStart is called for each new hold, right before AcquireEnd of the call that acquired it and
	// with the same context. The hold's context derives from the one that HoldStart returns, which
	// must derive from ctx. Without a HoldTracer it derives from the caller's.
	//
	// The returned trace hears how the hold ends; nil if it need not. It should not keep the context,
	// which may keep a hold reachable that its caller has dropped.
	HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace)
}

// HoldTrace hears of one hold.
type HoldTrace interface {
	// HoldEnd is called once: when the release has returned, or when the hold ended for another
	// reason.
	HoldEnd(d HoldEnd)
}

// WaitTracer is a [Tracer] that also hears of waits. A MultiLock waits for one of its parts.
type WaitTracer interface {
	// WaitStart is called when a caller begins to wait because the lock is not free, or others wait
	// for it already. ctx is that of AcquireEnd.
	WaitStart(ctx context.Context, d WaitStart)
	// WaitEnd is called, for each WaitStart, before AcquireEnd.
	WaitEnd(ctx context.Context, d WaitEnd)
}

// RenewalTracer is a [Tracer] that also hears of renewals by the watchdog.
type RenewalTracer interface {
	// RenewalEnd is called for each lock after each try to renew its lease.
	RenewalEnd(d RenewalEnd)
}

// RoundTracer is a [Tracer] that also hears of the rounds in which a RedLock asks its nodes.
type RoundTracer interface {
	// RoundEnd is called after each round of a call to Lock or TryLock that asks for a new hold. ctx
	// is that of AcquireEnd.
	RoundEnd(ctx context.Context, d RoundEnd)
}

// NodeTracer is a [Tracer] that also hears of failing nodes of RedLocks. It is asked for with the
// client of the node.
type NodeTracer interface {
	// NodeFailed is called when a node did not do what a RedLock asked of it. That another owner holds
	// the lock there is no failure.
	NodeFailed(d NodeFailed)
}

// TracedLock names a lock to a [Tracer].
type TracedLock struct {
	Name string
	// Kind is "reentrant", "non-reentrant", "fair", "fenced", "read", "write", "multilock" or
	// "redlock".
	Kind string
	// Server is Options.Server or the address of the server; "" if it has no name. A MultiLock and a
	// RedLock name all of theirs, joined by commas.
	Server string
}

// AcquireStart describes a call that wants a lock.
type AcquireStart struct {
	Lock  TracedLock
	Since time.Time     // when the call began
	Wait  time.Duration // [NoWait], [Forever], or the longest wait
	Lease time.Duration // [Watchdog], or the lease
}

// AcquireEnd describes the result of a call that wanted a lock.
type AcquireEnd struct {
	Lock   TracedLock
	Err    error         // what the caller gets; nil if the lock was acquired
	How    How           // how it was acquired
	Took   time.Duration // the whole call
	Waited time.Duration // from WaitStart to WaitEnd; 0 without a wait
	// Requests is how often Redis was asked. For a RedLock it is the number of rounds, which a nested
	// hold has none of; for a MultiLock 0: its parts tell.
	Requests int
}

// How says how a lock was acquired.
type How int

// The ways to acquire a lock.
const (
	NotAcquired How = iota
	Free            // it was free when Redis was asked, perhaps after a wait
	HandedOver      // a release of the same client gave it to the caller, who waited
	Granted         // a release of another client gave it to the caller, by a message
	Reentered       // the owner had it already
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

// WaitStart describes a wait that begins.
type WaitStart struct{ Lock TracedLock }

// WaitEnd describes a wait that is over.
type WaitEnd struct {
	Lock   TracedLock
	Waited time.Duration
	// Headed is when the caller became the first in its process to wait for the lock, and began to
	// ask Redis itself; zero if it never was.
	Headed time.Time
}

// HoldStart describes a hold that begins.
type HoldStart struct {
	Lock     TracedLock
	Owner    string // as others see it
	Token    int64  // the fencing token; 0 if there is none
	How      How
	Nested   bool // the owner has other holds of the lock: it is one more level
	Deadline time.Time
	Lease    time.Duration // in Redis
	Renewed  bool          // by the watchdog
}

// HoldEnd describes a hold that has ended.
type HoldEnd struct {
	Lock  TracedLock
	Owner string
	// Err is nil if the hold was released or left. It matches [ErrLost] if the lock was lost, even if
	// only the release found out, [ErrClosed] if the client was closed, and is the error of the release
	// if that failed. Then the lock stays held until its lease ends.
	Err  error
	Left bool // by Leave or Detach
	// Last reports that no other hold of the acquisition is left. Count losses, and what is held, by
	// that.
	Last bool
	Held time.Duration // since the first hold of the acquisition
	// Margin is what was left until the deadline when the hold ended; not above 0 if it had passed.
	Margin time.Duration
	Lease  time.Duration // the latest that this hold was given, which Margin is a part of
}

// RenewalEnd describes a try to renew the lease of a lock. That a lock was found gone is not told
// here, but as the end of its holds.
type RenewalEnd struct {
	Lock  TracedLock
	Owner string
	// Err is why the lease was not renewed; nil if it was. The watchdog tries again until the
	// deadline.
	Err error
	// Margin is what was left until the deadline, without this renewal.
	Margin time.Duration
	Lease  time.Duration // which that is a part of
	// Hold is what HoldStart returned for the first hold of the acquisition; nil for a node of a
	// RedLock, and without a HoldTracer.
	Hold HoldTrace
}

// RoundEnd describes a round of requests to the nodes of a RedLock.
type RoundEnd struct {
	Lock    TracedLock
	Round   int // 1 for the first of the call
	Granted int // the number of nodes that granted the lock
	Want    int // the quorum
	Took    time.Duration
	// Refused has the nodes that did not grant it, with the reason: a *[HeldError] if another owner
	// holds it. Nodes that were slower than a quorum are left out.
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
	// Operation is what the node did not do: "acquire", "extend", "release", or "hold" if it does
	// not have the lock any more.
	Operation string
	Err       error
}

// MultiTracer returns a Tracer that tells several, in their order. nil ones are left out. With none
// left it returns nil.
func MultiTracer(tracers ...Tracer) Tracer {
	var m multiTracer
	for _, t := range tracers {
		if t != nil {
			m = append(m, t)
		}
	}
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

// multiTracer implements all interfaces of tracers, and tells those that implement one, too.
type multiTracer []Tracer

func (m multiTracer) AcquireStart(ctx context.Context, d AcquireStart) context.Context {
	for _, t := range m {
		ctx = t.AcquireStart(ctx, d)
	}
	return ctx
}

func (m multiTracer) AcquireEnd(ctx context.Context, d AcquireEnd) {
	for _, t := range m {
		t.AcquireEnd(ctx, d)
	}
}

func (m multiTracer) WaitStart(ctx context.Context, d WaitStart) {
	for _, t := range m {
		if t, ok := t.(WaitTracer); ok {
			t.WaitStart(ctx, d)
		}
	}
}

func (m multiTracer) WaitEnd(ctx context.Context, d WaitEnd) {
	for _, t := range m {
		if t, ok := t.(WaitTracer); ok {
			t.WaitEnd(ctx, d)
		}
	}
}

// multiTrace has the traces of one hold, by tracer; nil for a tracer without one.
type multiTrace []HoldTrace

func (m multiTracer) HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace) {
	traces := make(multiTrace, len(m))
	for i, t := range m {
		if t, ok := t.(HoldTracer); ok {
			ctx, traces[i] = t.HoldStart(ctx, d)
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
			if d.Hold = nil; traces != nil {
				d.Hold = traces[i]
			}
			t.RenewalEnd(d)
		}
	}
}

func (m multiTracer) RoundEnd(ctx context.Context, d RoundEnd) {
	for _, t := range m {
		if t, ok := t.(RoundTracer); ok {
			t.RoundEnd(ctx, d)
		}
	}
}

func (m multiTracer) NodeFailed(d NodeFailed) {
	for _, t := range m {
		if t, ok := t.(NodeTracer); ok {
			t.NodeFailed(d)
		}
	}
}
