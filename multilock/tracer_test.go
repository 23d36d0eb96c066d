package multilock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestTracerHearsOfTheWholeAndItsParts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := new(locktest.Tracer)
	c := newClient(t, s, rlock.Options{Server: "cache", Tracer: tr})
	// The first two share a command.
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewFairLock("c"))
	whole := rlock.TracedLock{Name: "a+b+c", Kind: "multilock", Server: "cache"}

	hold := take(t, lock, longLease)
	var names []string
	for _, end := range locktest.Heard[rlock.AcquireEnd](tr) {
		require.NoError(t, end.Err)
		require.Equal(t, rlock.Free, end.How)
		require.Positive(t, end.Took)
		names = append(names, end.Lock.Name)
	}
	require.Equal(t, []string{"a", "b", "c", "a+b+c"}, names)
	starts := locktest.Heard[rlock.HoldStart](tr)
	require.Len(t, starts, 4)
	require.Equal(t, whole, starts[3].Lock)
	begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
	require.Equal(t, whole, begun.Lock)

	tr.Forget()
	inner := takeWith(hold.Context(), t, lock, longLease)
	for _, end := range locktest.Heard[rlock.AcquireEnd](tr) {
		require.Equal(t, rlock.Reentered, end.How, end.Lock.Name)
	}
	for _, start := range locktest.Heard[rlock.HoldStart](tr) {
		require.True(t, start.Nested, start.Lock.Name)
	}
	unlock(t, inner)
	for _, end := range locktest.Heard[rlock.HoldEnd](tr) {
		require.False(t, end.Last, end.Lock.Name)
	}
	tr.Forget()
	unlock(t, hold)
	ends := locktest.Heard[rlock.HoldEnd](tr)
	require.Len(t, ends, 4)
	for _, end := range ends {
		require.NoError(t, end.Err)
		require.True(t, end.Last)
		require.InDelta(t, longLease.Seconds(), end.Margin.Seconds(), longLease.Seconds()/2)
	}
}

// A batch that fails is no failed acquisition: the lock goes on without it.
func TestTracerHearsThatAMultiLockWaitsForAPart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := new(locktest.Tracer)
	c := newClient(t, s, rlock.Options{Tracer: tr})
	held := take(t, newClient(t, s, rlock.Options{}).NewLock("b"), longLease)
	_, err := multilock.NewOn(c, "a", "b").TryLock(t.Context(), 300*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	failed := map[string]bool{}
	for _, end := range locktest.Heard[rlock.AcquireEnd](tr) {
		if end.Err != nil {
			require.ErrorIs(t, end.Err, rlock.ErrNotAcquired)
			failed[end.Lock.Name] = true
		}
	}
	require.Equal(t, map[string]bool{"b": true, "a+b": true}, failed)
	require.Equal(t, "b", locktest.Heard[rlock.WaitStart](tr)[0].Lock.Name)
	unlock(t, held)
}

func TestMultiLockIsTracedByTheClientOfItsFirstLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first, second := new(locktest.Tracer), new(locktest.Tracer)
	own := struct{ rlock.Locker }{newClient(t, s, rlock.Options{}).NewLock("b")} // has no server
	c := newClient(t, s, rlock.Options{Server: "cache", Tracer: first}).NewLock("c")
	a := newClient(t, s, rlock.Options{Server: "cache", Tracer: second}).NewLock("a")
	unlock(t, take(t, multilock.New(own, c, a), longLease))
	whole := rlock.TracedLock{Name: "b+c+a", Kind: "multilock", Server: "cache"}
	var heard []rlock.TracedLock
	for _, end := range locktest.Heard[rlock.AcquireEnd](first) {
		heard = append(heard, end.Lock)
	}
	require.Contains(t, heard, whole)
	for _, end := range locktest.Heard[rlock.AcquireEnd](second) {
		require.Equal(t, "a", end.Lock.Name)
	}
}

// keepsReply is a rueidis client that keeps the reply of the next command back.
type keepsReply struct {
	rueidis.Client
	next atomic.Bool
	kept chan struct{} // gets a value when a reply is kept back
	pass chan struct{} // lets it pass when it is closed
}

func (k *keepsReply) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	result := k.Client.Do(ctx, command)
	if k.next.CompareAndSwap(true, false) {
		k.kept <- struct{}{}
		<-k.pass
	}
	return result
}
