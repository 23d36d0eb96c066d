package rlock_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// traced returns a client with a tracer.
func traced(t testing.TB, s *redistest.Server) (*rlock.Client, *locktest.Tracer) {
	t.Helper()
	tr := new(locktest.Tracer)
	return newClient(t, s, rlock.Options{Tracer: tr}), tr
}

// only returns the only event of a type.
func only[T any](t testing.TB, tr *locktest.Tracer) T {
	t.Helper()
	all := locktest.Heard[T](tr)
	require.Len(t, all, 1)
	return all[0]
}

// A waiter behind another of its process becomes the head later, or never.
func TestTracerHearsWhenAWaiterBecomesHead(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	inBubble(t, rlock.Options{Tracer: tr}, func(t *testing.T, b *bubble) {
		b.reply("acquire.lua", heldFor(600_000))
		for _, seconds := range []int{30, 10, 60} {
			wait := time.Duration(seconds) * time.Second
			go func() { _, _ = b.lock.TryLock(t.Context(), wait, longLease) }()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		waits := locktest.Heard[rlock.WaitEnd](tr)
		require.Len(t, waits, 3)
		require.True(t, waits[0].BecameHead.IsZero(), "it never was the head")
		require.Equal(t, b.start, waits[1].BecameHead)
		require.Equal(t, b.start.Add(30*time.Second), waits[2].BecameHead)
	})
}

// A lease that is shorter than what is left changes nothing.
func TestTracerHearsOfTheLeaseAfterAnExtension(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t))
	hold := take(t, c.NewLock("order"), longLease)
	require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Second)))
	unlock(t, hold)
	require.Equal(t, time.Duration(longLease), only[rlock.HoldEnd](t, tr).Lease)

	tr.Forget()
	hold = take(t, c.NewLock("order"), rlock.Lease(time.Minute))
	require.NoError(t, hold.Extend(t.Context(), longLease))
	unlock(t, hold)
	require.Equal(t, time.Duration(longLease), only[rlock.HoldEnd](t, tr).Lease)
}

func TestTracerHearsOfHoldsThatAreDetachedAndAttached(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t))
	hold := take(t, c.NewLock("order"), longLease)
	text, err := hold.Detach()
	require.NoError(t, err)
	require.NoError(t, only[rlock.HoldEnd](t, tr).Err)
	require.True(t, only[rlock.HoldEnd](t, tr).Left)

	tr.Forget()
	hold, err = c.Attach(t.Context(), text, longLease)
	require.NoError(t, err)
	require.Equal(t, rlock.Attached, only[rlock.AcquireEnd](t, tr).How)
	require.Equal(t, hold.Owner(), only[rlock.HoldStart](t, tr).Owner)

	tr.Forget()
	_, err = c.Attach(t.Context(), text, longLease) // it works once
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorIs(t, only[rlock.AcquireEnd](t, tr).Err, rlock.ErrLost)
	unlock(t, hold)
}

func TestTracerThatBlocksKeepsCloseFromReleasingNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	blocked, goOn := make(chan struct{}, 2), make(chan struct{})
	tr := &locktest.Tracer{Block: func(event any) {
		if _, ended := event.(rlock.HoldEnd); ended {
			blocked <- struct{}{}
			<-goOn
		}
	}}
	c := newClient(t, s, rlock.Options{Tracer: tr, ReleaseOnClose: true})
	take(t, c.NewLock("a"), longLease)
	take(t, c.NewLock("b"), longLease)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Close(ctx), context.Canceled)
	receive(t, blocked, "not told")
	waitUntilFree(t, s, "a")
	waitUntilFree(t, s, "b")
	close(goOn)
	closeClient(t, c)
	require.Len(t, locktest.Heard[rlock.HoldEnd](tr), 2)
}

// A call that is about a lock while the tracer hears of another one.
func TestTracerMayUseOtherLocks(t *testing.T) {
	t.Parallel()
	var other *rlock.Lock
	failed := make(chan error, 100)
	tr := &locktest.Tracer{Block: func(event any) {
		lock := reflect.ValueOf(event).FieldByName("Lock").Interface().(rlock.TracedLock)
		if lock.Name == other.Name() {
			return
		}
		hold, err := other.Lock(context.Background(), longLease)
		if err == nil {
			err = hold.Unlock()
		}
		if err != nil {
			failed <- err
		}
	}}
	c := newClient(t, redistest.Start(t),
		rlock.Options{Tracer: tr, WatchdogLease: 2 * time.Second})
	other = c.NewLock("other")
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
	locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
	require.Empty(t, failed)
}

// hooked is a rueidis client that notes what commands' contexts have from a tracer, as rueidisotel
// looks for the caller's span there.
type hooked struct {
	rueidis.Client
	mu   sync.Mutex
	seen []any // guarded by mu
}

func (h *hooked) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains([]string{"EVALSHA", "EVAL"}, command.Commands()[0]) {
		h.mu.Lock()
		h.seen = append(h.seen, ctx.Value(locktest.TraceKey{}))
		h.mu.Unlock()
	}
	return h.Client.Do(ctx, command)
}

func TestCommandsHaveTheContextOfTheTracer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, byWorkers := range []bool{false, true} {
		// With two connections, a caller that would have to dial leaves its command to a worker, and
		// the command is noted twice.
		h := &hooked{Client: s.Client(t, redistest.OneConnection)}
		c := newClientOn(t, h, rlock.Options{Anonymous: true, Tracer: new(locktest.Tracer)})
		if byWorkers {
			rlock.Detach(c)
		}
		warm(t, c, "warm")
		h.seen = nil
		hold := take(t, c.NewLock("order"), longLease)
		unlock(t, hold)
		h.mu.Lock()
		require.Len(t, h.seen, 2)
		require.IsType(t, rlock.AcquireStart{}, h.seen[0])
		require.IsType(t, rlock.HoldStart{}, h.seen[1])
		h.mu.Unlock()
	}
}

// plainTracer hears of nothing but calls.
type plainTracer struct{ *locktest.Tracer }

func (p plainTracer) HoldStart()  {} // hides the method of the tracer, as those below
func (p plainTracer) WaitStart()  {}
func (p plainTracer) RenewalEnd() {}

func TestMultiTracerTellsSeveral(t *testing.T) {
	t.Parallel()
	require.Nil(t, rlock.MultiTracer())
	require.Nil(t, rlock.MultiTracer(nil, nil))
	first, second, plain := new(locktest.Tracer), new(locktest.Tracer), new(locktest.Tracer)
	require.Same(t, first, rlock.MultiTracer(nil, first))
	all := rlock.MultiTracer(first, plainTracer{plain}, nil, second)
	inBubble(t, rlock.Options{Tracer: all}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Watchdog)
		begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
		require.Equal(t, hold.Owner(), begun.Owner)
		time.Sleep(15 * time.Second)
		b.reply("acquire.lua", heldFor(30_000))
		_, err := b.lock.TryLock(t.Context(), time.Second, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		unlock(t, hold)
		for _, tr := range []*locktest.Tracer{first, second} {
			require.Len(t, locktest.Heard[rlock.AcquireEnd](tr), 2)
			only[rlock.WaitStart](t, tr)
			only[rlock.WaitEnd](t, tr)
			only[rlock.HoldStart](t, tr)
			only[rlock.HoldEnd](t, tr)
			renewed := locktest.Heard[rlock.RenewalEnd](tr)
			require.NotEmpty(t, renewed)
			require.Equal(t, hold.Owner(), renewed[0].Hold.(locktest.HoldTrace).Owner)
		}
		require.Len(t, plain.Events(), 4, "the beginning and the end of two calls")
	})
}

// gatedHandler handles what is logged once its gate is open.
type gatedHandler struct {
	slog.Handler
	gate     chan struct{}
	messages []string
}

func (h *gatedHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.gate
	h.messages = append(h.messages, r.Message) // without a mutex: one call at a time
	return nil
}

func TestWarningsBeyondALimitAreCountedWhileTheLogHandlerBlocks(t *testing.T) {
	handler := &gatedHandler{Handler: slog.Default().Handler()}
	inBubble(t, rlock.Options{Logger: slog.New(handler)}, func(t *testing.T, b *bubble) {
		handler.gate = make(chan struct{}) // of the bubble
		open := sync.OnceFunc(func() { close(handler.gate) })
		defer open()
		warned := []string{"first"}
		rlock.Warn(b.client, "first")
		synctest.Wait()
		for i := range rlock.MostUnlogged + 5 {
			warned = append(warned, strconv.Itoa(i))
			rlock.Warn(b.client, strconv.Itoa(i))
		}
		open()
		synctest.Wait()
		kept := 1 + rlock.MostUnlogged
		require.Len(t, handler.messages, kept+1)
		require.Equal(t, warned[:kept], handler.messages[:kept], "in another order")
		require.Contains(t, handler.messages[kept], "5 warnings were dropped")
		rlock.Warn(b.client, "last")
		closeClient(t, b.client)
		require.Equal(t, "last", handler.messages[kept+1], "Close did not wait for it")
	})
}
