package rlock

import (
	"context"
	"slices"
	"time"
)

// Tracer is told how the locks of a client are acquired: see [Options].Tracer. To be told of more,
// it also implements [HoldTracer], [WaitTracer], [RenewalTracer], [RoundTracer] or [NodeTracer].
// Later versions may add fields to the structs, and interfaces. Package holdfast/otel has a Tracer
// for OpenTelemetry.
//
// Methods are called concurrently. Most are called by the goroutine whose call they are about. One
// that blocks delays that call; WaitStart and RoundEnd may also delay those that wait behind it.
//
// A background goroutine of each client calls RenewalEnd and NodeFailed, and HoldEnd for a hold
// that its holder has not released. A method that blocks there delays neither renewals nor the end
// of a hold's context. Once 4096 calls wait for it, further ones of RenewalEnd and NodeFailed are
// left out, which is logged; those of HoldEnd never are. Close waits for it until the context of
// Close ends.
//
// A method should not panic. If it panics or calls runtime.Goexit, the traced call does the same.
// That call leaves its queue, and releases in the background what it has acquired. A panic in the
// background ends the process. A method must not use the traced lock.
//
// A MultiLock or RedLock uses the tracer of the client of the first lock that it was made of. The
// parts of a MultiLock are traced as well, like all locks; those that are acquired by one command
// only once it has succeeded. Of the locks on the nodes of a RedLock only renewals and failures are
// told.
type Tracer interface {
	// AcquireStart is called when a call to Lock, TryLock or Attach begins. The call goes on with
	// the context that it returns, which must derive from ctx.
	AcquireStart(ctx context.Context, d AcquireStart) context.Context
	// AcquireEnd is called before that call returns, with the context from AcquireStart.
	AcquireEnd(ctx context.Context, d AcquireEnd)
}

// HoldTracer is a [Tracer] that is also told of holds.
type HoldTracer interface {
	// HoldStart is called for each new hold, right before AcquireEnd of the call that acquired it and
	// with the same context. The hold's context derives from the one that HoldStart returns, which
	// must derive from ctx. Without a HoldTracer it derives from the caller's.
	//
	// The returned trace is told how the hold ends, unless it is nil. It should not keep the context:
	// that may keep a hold reachable that its caller has dropped, which is then not reported.
	HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace)
}

// HoldTrace is told of one hold.
type HoldTrace interface {
	// HoldEnd is called once: after the hold was released, or when it ended for another reason.
	HoldEnd(d HoldEnd)
}

// WaitTracer is a [Tracer] that is also told of waits. Of a MultiLock a part waits, not the whole.
type WaitTracer interface {
	// WaitStart is called when a caller begins to wait, because the lock is not free or because others
	// wait for it already. It is called once for each call, with the context from AcquireStart.
	WaitStart(ctx context.Context, d WaitStart)
	// WaitEnd is called after WaitStart, and before HoldStart and AcquireEnd, with the same context.
	WaitEnd(ctx context.Context, d WaitEnd)
}

// RenewalTracer is a [Tracer] that is also told of renewals by the watchdog.
type RenewalTracer interface {
	// RenewalEnd is called for each lock, and each node of a RedLock, after each try to renew its
	// lease.
	RenewalEnd(d RenewalEnd)
}

// RoundTracer is a [Tracer] that is also told of the rounds in which a RedLock asks its nodes.
type RoundTracer interface {
	// RoundEnd is called after each round of a call that wants a lock, with the context from
	// AcquireStart. A call whose owner holds the lock already has no rounds.
	RoundEnd(ctx context.Context, d RoundEnd)
}

// NodeTracer is a [Tracer] that is also told of failing nodes of RedLocks. It belongs to the client
// of the node.
type NodeTracer interface {
	// NodeFailed is called when a node did not do what a RedLock asked of it. A node on which another
	// owner holds the lock has not failed.
	NodeFailed(d NodeFailed)
}

// TracedLock says which lock a [Tracer] is told about.
type TracedLock struct {
	Name string
	// Kind is "reentrant", "non-reentrant", "fair", "non-reentrant fair", "fenced", "read", "write",
	// "multilock" or "redlock".
	Kind string
	// Server is Options.Server or the address of the server; "" if it has no name. For a MultiLock or
	// RedLock it has the names of its servers, sorted and joined by commas.
	Server string
}

// AcquireStart describes a call that wants a lock.
type AcquireStart struct {
	Lock  TracedLock
	Since time.Time     // when the call began
	Wait  time.Duration // [NoWait], [Forever], or the longest wait
	Lease Lease         // [Watchdog], or the lease
}

// AcquireEnd describes the result of a call that wanted a lock.
type AcquireEnd struct {
	Lock TracedLock
	// Err is what the caller gets; nil if the lock was acquired. A [*HeldError] names the holder. Who
	// held a lock that was acquired after a wait is not told.
	Err    error
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

// WaitStart describes a wait that begins.
type WaitStart struct{ Lock TracedLock }

// WaitEnd describes a wait that is over.
type WaitEnd struct {
	Lock   TracedLock
	Waited time.Duration
	// BecameHead is when the caller became the first in its process to wait for the lock, and began
	// to ask Redis itself; zero if it never did.
	BecameHead time.Time
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
	// only the release found out, and [ErrClosed] if the client was closed. If the release failed it
	// is that error, and the lock may stay held until its lease ends.
	Err  error
	Left bool // by Leave or Detach
	// Last reports whether it was the last hold of its acquisition. To count locks, count only these.
	Last bool
	Held time.Duration // since the first hold of the acquisition
	// Margin is what was left until the deadline when the hold ended; 0 or less if it had passed.
	Margin time.Duration
	Lease  time.Duration // the latest lease of this hold, which Margin is a part of
}

// RenewalEnd describes a try to renew the lease of a lock. A lock that was found gone is not told
// here, but by the end of its holds.
type RenewalEnd struct {
	Lock  TracedLock
	Owner string
	// Err is why the lease was not renewed; nil if it was. The watchdog tries again until the
	// deadline. If there is no reply after a sixth of the lease, or longer if it is missing again,
	// RenewalEnd reports the missing reply. A later reply still counts, so RenewalEnd reports it too,
	// unless the lock was released meanwhile.
	Err error
	// Margin is what was left until the deadline, had this renewal not come.
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
	// Refused has the nodes that did not grant it, and why: a *[HeldError] if another owner holds it.
	// A node is left out if the round was decided before it replied.
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
	// Operation is what the node did not do: "acquire", "extend", "release", or "hold" if it no longer
	// has the lock.
	Operation string
	Err       error
}

// MultiTracer returns a Tracer that tells each of tracers, in order. It skips nil ones, and returns
// nil if there are no others.
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

// multiTracer implements all interfaces of tracers. It tells those that implement them as well.
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

// multiTrace has the traces of one hold, in the order of the tracers; nil for one without.
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
