package suite

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Tracer: a tracer is told of each step once, and delays nothing that goes on in the background.
// The parts of a MultiLock are told as well, like all locks. These proofs look at the whole.
var tracer = []Promise{
	{
		Name: "each step is told once and in order, with its lock, owner, lease and token",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			lock, began := k.New(p, "lock"), time.Now()
			hold, err := lock.TryLock(t.Context(), 5*time.Second, rlock.Lease(20*time.Second))
			require.NoError(t, err)
			start := told[rlock.AcquireStart](t, tr, lock)
			require.Equal(t, 5*time.Second, start.Wait)
			require.Equal(t, rlock.Lease(20*time.Second), start.Lease)
			require.WithinRange(t, start.Since, began, time.Now())
			require.Equal(t, tracedKind(k), start.Lock.Kind)
			require.Equal(t, e.addressed(), start.Lock.Server != "")
			held := told[rlock.HoldStart](t, tr, lock)
			if k.Name == "redlock" { // the reply of a slow node moves the deadline on
				require.WithinRange(t, held.Deadline, hold.Deadline().Add(-time.Second), hold.Deadline())
			} else {
				require.Equal(t, hold.Deadline(), held.Deadline)
			}
			require.Equal(t, rlock.HoldStart{Lock: start.Lock, Owner: hold.Owner(), Token: hold.Token(),
				How: rlock.Free, Deadline: held.Deadline, Lease: 20 * time.Second}, held)
			end := told[rlock.AcquireEnd](t, tr, lock)
			require.Equal(t, rlock.AcquireEnd{Lock: start.Lock, How: rlock.Free, Took: end.Took,
				Requests: end.Requests}, end)
			require.Equal(t, k.Name != "multilock", end.Requests == 1)

			locktest.Unlock(t, hold)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			released := told[rlock.HoldEnd](t, tr, lock)
			require.InDelta(t, 20, released.Margin.Seconds(), 5)
			require.Equal(t, rlock.HoldEnd{Lock: start.Lock, Owner: hold.Owner(), Last: true,
				Held: released.Held, Margin: released.Margin, Lease: 20 * time.Second}, released)
			require.Equal(t, []string{"AcquireStart", "HoldStart", "AcquireEnd", "HoldEnd"},
				steps(tr, lock))
		},
	},
	{
		Name:  "an attempt that fails is told with the caller's error, and a wait with its length",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			lock := k.New(p, "lock")
			other := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			e.settle()
			_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.Equal(t, []string{"AcquireStart", "AcquireEnd"}, steps(tr, lock))
			end := told[rlock.AcquireEnd](t, tr, lock)
			require.Equal(t, err, end.Err)
			require.Equal(t, rlock.NotAcquired, end.How)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, wait := range []func() error{
				func() error {
					_, err := lock.TryLock(t.Context(), 500*time.Millisecond, rlock.Lease(time.Minute))
					return err
				},
				func() error {
					time.AfterFunc(500*time.Millisecond, cancel)
					_, err := lock.Lock(ctx, rlock.Lease(time.Minute))
					return err
				},
			} {
				tr.Forget()
				err := wait()
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				end := told[rlock.AcquireEnd](t, tr, lock)
				require.Equal(t, err, end.Err)
				require.Equal(t, 500*time.Millisecond, end.Took)
				if k.Name == "multilock" {
					continue // a part waits, not the whole
				}
				require.Equal(t, []string{"AcquireStart", "WaitStart", "WaitEnd", "AcquireEnd"},
					steps(tr, lock))
				waited := told[rlock.WaitEnd](t, tr, lock)
				require.Equal(t, waited.Waited, end.Waited)
				require.Equal(t, 500*time.Millisecond, waited.Waited)
				require.False(t, waited.BecameHead.IsZero())
			}
			locktest.Unlock(t, other)
		},
	},
	{
		Name:  "a hold that was waited for is told as handed over or granted where locks are",
		Kept:  ofOneClient,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, within := range []bool{true, false} {
				p, tr := e.traced(t)
				by := p
				if !within {
					by = e.Party(t)
				}
				lock := k.New(p, fmt.Sprint("within:", within))
				hold := locktest.Acquire(t, k.Contender(by, lock.Name()), rlock.Watchdog)
				tr.Forget()
				waiter := e.waiter(t.Context(), t, lock)
				locktest.Unlock(t, hold)
				locktest.Unlock(t, locktest.Acquired(t, waiter))
				require.Equal(t, handed(k, by, p), told[rlock.AcquireEnd](t, tr, lock).How)
				require.Equal(t, handed(k, by, p), told[rlock.HoldStart](t, tr, lock).How)
			}
		},
	},
	{
		Name: "nested holds are told as such, and which of them was the last",
		Kept: func(k Kind) bool { return !k.Flat },
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			lock := k.New(p, "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			require.False(t, told[rlock.HoldStart](t, tr, lock).Nested)
			tr.Forget()
			inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			require.Equal(t, rlock.Reentered, told[rlock.AcquireEnd](t, tr, lock).How)
			begun := told[rlock.HoldStart](t, tr, lock)
			require.True(t, begun.Nested)
			require.True(t, begun.Renewed)
			locktest.Unlock(t, outer)
			require.False(t, told[rlock.HoldEnd](t, tr, lock).Last)
			tr.Forget()
			locktest.Unlock(t, inner)
			require.True(t, told[rlock.HoldEnd](t, tr, lock).Last)
		},
	},
	{
		Name: "a loss is told once for each hold, whatever finds it",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			lock := k.New(p, "lock")
			hold := locktest.Acquire(t, lock, rlock.Lease(3*time.Second))
			locktest.Receive(t, hold.Done(), "its lease does not end")
			end := locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0]
			require.ErrorIs(t, end.Err, rlock.ErrExpired)
			require.LessOrEqual(t, end.Margin, time.Duration(0))
			require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			told[rlock.HoldEnd](t, tr, lock)

			e.RequireNothingLeft(t)
			tr.Forget()
			hold, err := lock.TryLock(t.Context(), 10*time.Second, rlock.Lease(time.Minute))
			require.NoError(t, err)
			e.everywhere(t, k, "lock")
			e.doAll(t, "DEL", k.key("lock"))
			require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			end = told[rlock.HoldEnd](t, tr, lock)
			require.ErrorIs(t, end.Err, rlock.ErrGone)
			require.True(t, end.Last)
			require.Positive(t, end.Margin)

			if k.Name == "multilock" {
				return // it is forced in its parts, one after the other
			}
			tr.Forget()
			hold = locktest.Acquire(t, lock, rlock.Lease(time.Minute))
			k.force(t, p, "lock")
			requireLost(t, hold)
			require.ErrorIs(t, locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0].Err, hold.Err())
			require.ErrorIs(t, hold.Err(), rlock.ErrForced)
		},
	},
	{
		Name: "a release without a reply is told as one whose outcome is unknown",
		Test: func(t *testing.T, e *Env, k Kind) {
			tr := new(locktest.Tracer)
			p, wire := e.PartyOnWire(t, k, commandTimeout(2*time.Second),
				func(o *rlock.Options) { o.Tracer = tr })
			lock := k.New(p, "lock")
			tr.Forget()
			hold := locktest.Acquire(t, lock, rlock.Lease(time.Minute))
			wire.settle(t, e)
			wire.Lose(all)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrOutcomeUnknown)
			require.ErrorIs(t, told[rlock.HoldEnd](t, tr, lock).Err, rlock.ErrOutcomeUnknown)
		},
	},
	{
		Name:  "a hold that is left, or that Close ends, is told as such",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for i, releases := range []bool{false, true} {
				p, tr := e.traced(t, func(o *rlock.Options) { o.ReleaseOnClose = releases })
				left := k.New(p, fmt.Sprint("left", i))
				locktest.Acquire(t, left, rlock.Lease(time.Minute)).Leave()
				end := told[rlock.HoldEnd](t, tr, left)
				require.NoError(t, end.Err)
				require.True(t, end.Left && end.Last)

				kept := k.New(p, fmt.Sprint("kept", i))
				locktest.Acquire(t, kept, rlock.Watchdog)
				e.settle()
				for _, c := range p.Clients {
					locktest.CloseClient(t, c)
				}
				end = told[rlock.HoldEnd](t, tr, kept) // Close waits until all was told
				require.False(t, end.Left)
				if releases && ofOneClient(k) {
					require.NoError(t, end.Err)
				} else if !releases {
					require.ErrorIs(t, end.Err, rlock.ErrClosed)
				}
			}
		},
	},
	{
		Name:  "each renewal is told with what was left of the lease",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			time.Sleep(35 * time.Second)
			renewals := locktest.Heard[rlock.RenewalEnd](tr)
			parts := 1 // that are renewed on their own
			if !ofOneClient(k) {
				parts = 3
			}
			require.Len(t, renewals, 3*parts, "one for each 10 s")
			for _, r := range renewals {
				require.NoError(t, r.Err)
				require.Equal(t, 30*time.Second, r.Lease)
				require.InDelta(t, 20*time.Second, r.Margin, float64(time.Second))
			}
			locktest.Unlock(t, hold)
		},
	},
	{
		Name:  "a tracer that blocks in the background delays no renewal and no loss",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, tr := e.traced(t)
			unblock := make(chan struct{})
			tr.Block = func(event any) {
				if _, renewal := event.(rlock.RenewalEnd); renewal {
					<-unblock
				}
			}
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			time.Sleep(5 * time.Minute)
			require.True(t, hold.Valid())
			for _, server := range e.Servers {
				server.Do(t, "DEL", k.key("lock"))
			}
			time.Sleep(30 * time.Second)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, p.Client.Close(ctx), context.Canceled, "it waits for the tracer")
			close(unblock)
			locktest.CloseClient(t, p.Client)
			require.ErrorIs(t, told[rlock.HoldEnd](t, tr, k.New(p, "lock")).Err, rlock.ErrLost)
		},
	},
	{
		Name: "a tracer that panics or exits ends the traced call alike, which leaves nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			for how := range locktest.Ends {
				for at, step := range []any{rlock.AcquireStart{}, rlock.HoldStart{}, rlock.AcquireEnd{}} {
					p, tr := e.traced(t)
					lock := k.New(p, fmt.Sprint(how, at))
					var once sync.Once
					tr.Block = func(event any) {
						if reflect.TypeOf(event) == reflect.TypeOf(step) && lockOf(event).Name == lock.Name() {
							once.Do(locktest.Ends[how])
						}
					}
					require.Equal(t, how, locktest.EndOf(t, func() { _, _ = lock.Lock(t.Context(), -1) }))
				}
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "the context of a hold derives from that of the tracer",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, _ := e.traced(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
			require.Equal(t, hold.Owner(), begun.Owner)
			locktest.Unlock(t, hold)
			require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrReleased)
		},
	},
}

// traced returns a party with a tracer, which is that of all its clients.
func (e *Env) traced(t *testing.T, options ...func(*rlock.Options)) (*Party, *locktest.Tracer) {
	t.Helper()
	tr := new(locktest.Tracer)
	return e.Party(t, append(options, func(o *rlock.Options) { o.Tracer = tr })...), tr
}

// lockOf returns the lock that an event is about.
func lockOf(event any) rlock.TracedLock {
	return reflect.ValueOf(event).FieldByName("Lock").Interface().(rlock.TracedLock)
}

// steps returns the types of the events of a lock, in their order.
func steps(tr *locktest.Tracer, of rlock.Locker) (types []string) {
	for _, event := range tr.Events() {
		_, round := event.(rlock.RoundEnd)
		if lockOf(event).Name == of.Name() && !round {
			types = append(types, strings.TrimPrefix(fmt.Sprintf("%T", event), "rlock."))
		}
	}
	return types
}

// told returns the only event of a type and a lock.
func told[E any](t *testing.T, tr *locktest.Tracer, of rlock.Locker) E {
	t.Helper()
	var all []E
	for _, event := range locktest.Heard[E](tr) {
		if lockOf(event).Name == of.Name() {
			all = append(all, event)
		}
	}
	require.Len(t, all, 1)
	return all[0]
}

// tracedKind returns the kind of a lock as tracers are told.
func tracedKind(k Kind) string {
	name := strings.Replace(k.Name, "nonreentrant", "non-reentrant", 1)
	switch name {
	case "plain":
		return "reentrant"
	case "write-behind-readers":
		return "write"
	}
	return strings.Replace(name, "-fair", " fair", 1)
}

// handed returns how a waiter gets a lock that a client releases: its own client, or another one.
func handed(k Kind, by, own *Party) rlock.How {
	switch {
	case k.HandsOver && by != own:
		return rlock.Granted
	case k.HandsOver, k.Name == "write" && by == own:
		return rlock.HandedOver
	}
	return rlock.Free // a read lock has no next one, and a fair lock a queue
}
