package multilock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

// notes records what the lockers of a test were asked for, in order.
type notes struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

// foreign is a lock from outside package rlock.
type foreign struct {
	name, server string
	notes        *notes
	refusal      error // of the acquisition
	failure      error // of the release
	end          func(error)
}

func (f *foreign) Name() string   { return f.name }
func (f *foreign) Server() string { return f.server }

func (f *foreign) Lock(ctx context.Context, _ time.Duration) (*rlock.Hold, error) {
	if f.refusal != nil {
		return nil, f.refusal
	}
	f.notes.add("lock " + f.name)
	acquired := &foreignAcquisition{foreign: f, until: time.Now().Add(time.Hour)}
	hold, end := rlock.NewHold(ctx, acquired)
	f.end, acquired.end = end, end
	return hold, nil
}

func (f *foreign) TryLock(ctx context.Context, _, lease time.Duration) (*rlock.Hold, error) {
	return f.Lock(ctx, lease)
}

func (f *foreign) Unlock(context.Context) error { return rlock.ErrNotHeld }

// foreignAcquisition is the acquisition of a foreign lock.
type foreignAcquisition struct {
	*foreign
	until time.Time
	end   func(error)
}

func (a *foreignAcquisition) Owner() string       { return "foreign owner" }
func (a *foreignAcquisition) Token() int64        { return 0 }
func (a *foreignAcquisition) Deadline() time.Time { return a.until }

func (a *foreignAcquisition) Extend(context.Context, time.Duration) error {
	a.notes.add("extend " + a.name)
	return nil
}

func (a *foreignAcquisition) Release(*rlock.Hold) error {
	a.notes.add("release " + a.name)
	a.end(rlock.ErrReleased)
	return a.failure
}

func TestForeignLockersMayBeParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	var asked notes
	f := &foreign{name: "f", server: "first", notes: &asked}
	g := &foreign{name: "a", server: "third", notes: &asked}
	lock := multilock.New(g, p.client.NewLock("z"), p.another.NewLock("b"), f, g,
		multilock.New(f, p.client.NewLock("a")))
	hold := take(t, lock, longLease)
	require.Equal(t, []string{"lock f", "lock a"}, asked.lines,
		"each once, in the order of servers and names")
	require.NoError(t, hold.Extend(t.Context(), longLease))
	require.Len(t, asked.lines, 4)
	require.NoError(t, lock.Unlock(hold.Context()))
	require.Len(t, asked.lines, 6)
	requireFree(t, p.first, p.second)

	hold = take(t, lock, longLease)
	why := &rlock.LostError{Lock: "f", Reason: errors.New("the dog ate it")}
	f.end(why)
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorContains(t, hold.Err(), strings.TrimPrefix(why.Error(), "holdfast: "))
	require.Equal(t, []string{"a", "z"}, slices.Sorted(slices.Values(left(t, p.first))))
	require.NoError(t, hold.Unlock(t.Context()), "the locker reports no error")
	requireFree(t, p.first, p.second)
}

func TestErrorsOfForeignLockersAreReturned(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	f := &foreign{name: "f", server: "third", notes: &notes{}, refusal: errors.New("no paper left"),
		failure: errors.New("on fire")}
	lock := multilock.New(f, p.client.NewLock("a"), p.another.NewLock("b"))
	_, err := lock.TryLock(t.Context(), longWait, longLease)
	require.ErrorIs(t, err, f.refusal)
	requireFree(t, p.first, p.second)
	f.refusal = nil
	require.ErrorIs(t, take(t, lock, longLease).Unlock(t.Context()), f.failure)
	requireFree(t, p.first, p.second)

	// It is held when a later part is refused, and the error says that it stays held.
	f.server = "a server before all others"
	p.second.Do(t, "HSET", "b", "somebody:1", "1")
	lock = multilock.New(f, p.client.NewLock("a"), p.another.NewLock("b"))
	_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorIs(t, err, f.failure)
	require.ErrorContains(t, err, "and a part was not released")
	requireFree(t, p.first)
}

// Where a lock without a server's name is, is not known, nested or not.
func TestLocksOfUnknownServersAreRefusedAlsoIfTheyAreNested(t *testing.T) {
	a, b := &foreign{name: "a", notes: new(notes)}, &foreign{name: "b", notes: new(notes)}
	for _, lock := range []*multilock.Lock{multilock.New(a, b),
		multilock.New(multilock.New(a), multilock.New(b)), multilock.New(a, multilock.New(b))} {
		_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
		require.ErrorIs(t, err, rlock.ErrInvalid)
	}
}

// keyed is a Locker that finds its levels by the address of their holds.
type keyed struct {
	mu   sync.Mutex
	ends map[*rlock.Hold]func(error) // guarded by mu
}

func (k *keyed) Name() string   { return "keyed" }
func (k *keyed) Server() string { return "a third" }
func (k *keyed) Lock(ctx context.Context, _ time.Duration) (*rlock.Hold, error) {
	h, end := rlock.NewHold(ctx, k)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends[h] = end
	return h, nil
}

func (k *keyed) TryLock(ctx context.Context, _, lease time.Duration) (*rlock.Hold, error) {
	return k.Lock(ctx, lease)
}

func (k *keyed) Unlock(context.Context) error                { return rlock.ErrNotHeld }
func (k *keyed) Owner() string                               { return "me" }
func (k *keyed) Token() int64                                { return 0 }
func (k *keyed) Deadline() time.Time                         { return time.Now().Add(time.Hour) }
func (k *keyed) Extend(context.Context, time.Duration) error { return nil }
func (k *keyed) Release(h *rlock.Hold) error {
	k.mu.Lock()
	end := k.ends[h]
	delete(k.ends, h)
	k.mu.Unlock()
	if end == nil {
		return rlock.ErrNotHeld
	}
	end(rlock.ErrReleased)
	return nil
}

func TestForeignLockerReleasesTheHoldThatItMade(t *testing.T) {
	t.Parallel()
	k := &keyed{ends: make(map[*rlock.Hold]func(error))}
	p := startPair(t, rlock.Options{})
	unlock(t, take(t, multilock.New(k, p.client.NewLock("a")), longLease))
	require.Empty(t, k.ends)
}
