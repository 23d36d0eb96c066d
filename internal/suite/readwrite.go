package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Read-write locks: readers share, a writer excludes all, and a waiting writer comes before new
// readers. A writer may read, and may go on reading. A reader cannot become a writer.
var readWrite = []Promise{
	{
		Name: "readers of all clients share the lock, and keep a writer out until the last leaves",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			holds := []*rlock.Hold{locktest.Acquire(t, c.Read(), rlock.Lease(time.Minute)),
				locktest.Acquire(t, c.Read(), rlock.Watchdog),
				locktest.Acquire(t, d.Read(), rlock.Lease(2*time.Minute))}
			holds = append(holds,
				locktest.AcquireWith(holds[2].Context(), t, d.Read(), rlock.Watchdog))
			readers := infoOf(t, c.Read()).Readers
			require.Equal(t, map[string]int{
				holds[0].Owner(): 1, holds[1].Owner(): 1, holds[2].Owner(): 2,
			}, readers)
			writer := e.waiter(t.Context(), t, d.Write())
			_, err := c.Write().TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.Contains(t, readers, heldError(t, err).Owner)
			for _, hold := range []*rlock.Hold{holds[2], holds[0], holds[1], holds[3]} {
				e.requireWaiting(t, writer)
				locktest.Unlock(t, hold)
			}
			locktest.Unlock(t, locktest.Acquired(t, writer))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a release of the write lock lets all readers in at once, wherever they wait",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			locks := []*rlock.ReadWriteLock{e.pages(t), e.pages(t), e.pages(t)}
			writer := locktest.Acquire(t, locks[0].Write(), rlock.Watchdog)
			var readers []<-chan locktest.Outcome
			for i := range 12 {
				readers = append(readers,
					locktest.LockInBackground(t.Context(), locks[i%3].Read(), rlock.Watchdog))
			}
			e.requireWaiting(t, readers...)
			released := time.Now()
			locktest.Unlock(t, writer)
			for _, reader := range readers { // which keep it until all have it
				hold := e.acquiredSince(t, released, reader)
				defer locktest.Unlock(t, hold)
			}
		},
	},
	{
		Name: "new readers step back for a writer that waits, and nested reads do not",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			writer := e.waiter(t.Context(), t, d.Write())
			locktest.Eventually(t, func() bool { return len(e.known(t)) > 0 }, "it is unknown")
			behind := e.waiter(t.Context(), t, c.Read())
			_, err := d.Read().TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			held := heldError(t, err)
			require.True(t, held.Next)
			require.ErrorContains(t, err, "comes first")
			locktest.Unlock(t, locktest.AcquireWith(reading.Context(), t, c.Read(), rlock.Watchdog))
			e.requireWaiting(t, writer, behind)
			locktest.Unlock(t, reading)
			writing := locktest.Acquired(t, writer)
			require.Equal(t, held.Owner, writing.Owner())
			e.requireWaiting(t, behind)
			released := time.Now()
			locktest.Unlock(t, writing)
			locktest.Unlock(t, e.acquiredSince(t, released, behind))
		},
	},
	{
		Name: "a writer that gives up lets the readers behind it in at once",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			closing := e.Party(t)
			for _, byClosing := range []bool{false, true} {
				ctx, end := context.WithCancel(t.Context())
				writer := d.Write()
				if byClosing {
					writer = closing.Client.NewReadWriteLock("page").Write()
					end = func() { locktest.CloseClient(t, closing.Client) }
				}
				waiting := e.waiter(ctx, t, writer)
				locktest.Eventually(t, func() bool { return len(e.known(t)) > 0 }, "it is unknown")
				behind := []<-chan locktest.Outcome{
					e.waiter(t.Context(), t, c.Read()), e.waiter(t.Context(), t, d.Read())}
				e.requireWaiting(t, behind...)
				end()
				left := locktest.Result(t, waiting)
				require.Error(t, left.Err)
				for _, b := range behind {
					locktest.Unlock(t, e.acquiredSince(t, left.At, b))
				}
			}
			locktest.Unlock(t, reading)
		},
	},
	{
		Name:  "a waiting writer that died holds readers back for seconds",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			dying, wire := e.PartyOnWire(t, k)
			c, d := e.pages(t), e.pages(t)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e.waiter(ctx, t, dying.Client.NewReadWriteLock("page").Write())
			behind := []<-chan locktest.Outcome{
				e.waiter(t.Context(), t, c.Read()), e.waiter(t.Context(), t, d.Read())}
			e.requireWaiting(t, behind...)
			wire.Cut()
			died := time.Now()
			for _, reader := range behind {
				o := locktest.Result(t, reader)
				require.NoError(t, o.Err)
				require.LessOrEqual(t, o.At.Sub(died), 7*time.Second)
				locktest.Unlock(t, o.Hold)
			}
			locktest.Unlock(t, reading)
		},
	},
	{
		Name:  "readers that waited for a writer come before the next writer",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			writing := locktest.Acquire(t, c.Write(), rlock.Watchdog)
			// Only the first reader of a client asks. Those behind it come with it.
			readers := []<-chan locktest.Outcome{e.waiter(t.Context(), t, d.Read()),
				e.waiter(t.Context(), t, d.Read()), e.waiter(t.Context(), t, d.Read())}
			next := e.waiter(t.Context(), t, c.Write())
			locktest.Unlock(t, writing)
			for _, reader := range readers {
				hold := locktest.Acquired(t, reader)
				require.Empty(t, next)
				defer func() {
					e.requireWaiting(t, next)
					locktest.Unlock(t, hold)
				}()
			}
		},
	},
	{
		Name:  "a writer holds readers back for one watchdog lease, and then they pass it for a while",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			began := time.Now()
			writer := e.waiter(t.Context(), t, d.Write())
			passed := e.waiter(t.Context(), t, c.Read())
			select {
			case o := <-passed:
				require.NoError(t, o.Err)
				require.InDelta(t, 30*time.Second, time.Since(began), float64(6*time.Second))
				locktest.Unlock(t, o.Hold)
			case <-time.After(time.Hour):
				require.Fail(t, "readers starve")
			}
			e.requireWaiting(t, writer)
			locktest.Unlock(t, reading)
			locktest.Unlock(t, locktest.Acquired(t, writer))
		},
	},
	{
		Name: "an attempt to write without wait holds no reader back",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			c, d := e.pages(t), e.pages(t)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			_, err := d.Write().TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			locktest.Unlock(t, locktest.Acquire(t, c.Read(), rlock.Watchdog))
			locktest.Unlock(t, reading)
			locktest.Unlock(t, locktest.Acquire(t, d.Write(), rlock.Watchdog)) // no turn of readers
		},
	},
	{
		Name: "with PreferNobody no reader steps back",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			nobody := func(o *rlock.Options) { o.WriterPreference = rlock.PreferNobody }
			c, d := e.pages(t, nobody), e.pages(t, nobody)
			reading := locktest.Acquire(t, c.Read(), rlock.Watchdog)
			writer := e.waiter(t.Context(), t, d.Write())
			locktest.Unlock(t, locktest.Acquire(t, d.Read(), rlock.Watchdog))
			locktest.Unlock(t, reading)
			locktest.Unlock(t, locktest.Acquired(t, writer))
			require.Empty(t, e.Servers[0].Keys(t), "only precedence has keys of its own")
		},
	},
	{
		Name: "an owner that reads is refused the write lock at once, and nothing is sent",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			lock, owner := e.pages(t, anonymous), rlock.WithOwner(t.Context())
			hold := locktest.AcquireWith(owner, t, lock.Read(), rlock.Watchdog)
			before := e.scripts(t)
			for _, wait := range []time.Duration{rlock.NoWait, time.Minute, rlock.Forever} {
				_, err := lock.Write().TryLock(owner, wait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrUpgrade)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				requireOnePrefix(t, err)
			}
			require.Equal(t, before, e.scripts(t))
			require.True(t, hold.Valid())
			locktest.Unlock(t, hold)
			locktest.Unlock(t, locktest.AcquireWith(owner, t, lock.Write(), rlock.Watchdog))
		},
	},
	{
		Name: "a writer that reads on after its write lock lets readers in and keeps writers out",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			lock, far, owner := e.pages(t), e.pages(t), rlock.WithOwner(t.Context())
			write := locktest.AcquireWith(owner, t, lock.Write(), rlock.Watchdog)
			readers := []<-chan locktest.Outcome{
				e.waiter(t.Context(), t, lock.Read()), e.waiter(t.Context(), t, far.Read())}
			read := locktest.AcquireWith(owner, t, lock.Read(), rlock.Watchdog) // though others wait
			require.Equal(t, write.Owner(), read.Owner())
			e.requireWaiting(t, readers...)
			released := time.Now()
			locktest.Unlock(t, write)
			for _, reader := range readers {
				locktest.Unlock(t, e.acquiredSince(t, released, reader))
			}
			require.True(t, read.Valid())
			_, err := far.Write().TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			_, err = lock.Write().TryLock(owner, time.Second, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrUpgrade)
			locktest.Unlock(t, read)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a writer's write and read leases end on their own, and neither ends the other",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			for _, leases := range [][2]time.Duration{{time.Second, time.Hour}, {time.Hour, time.Second}} {
				lock, far, owner := e.pages(t), e.pages(t), rlock.WithOwner(t.Context())
				write := locktest.AcquireWith(owner, t, lock.Write(), rlock.Lease(leases[0]))
				read := locktest.AcquireWith(owner, t, lock.Read(), rlock.Lease(leases[1]))
				ends, stays, began := write, read, time.Now()
				if leases[0] > leases[1] {
					ends, stays = read, write
				}
				reader := e.waiter(t.Context(), t, far.Read())
				<-ends.Done()
				require.ErrorIs(t, ends.Err(), rlock.ErrExpired)
				require.True(t, stays.Valid())
				if stays == write {
					e.requireWaiting(t, reader)
					locktest.Unlock(t, stays)
				}
				locktest.Unlock(t, locktest.Acquired(t, reader))
				require.Less(t, time.Since(began), 6*time.Second)
				if stays == read {
					locktest.Unlock(t, stays)
				}
				e.RequireNothingLeft(t)
				time.Sleep(time.Minute) // the turn of readers that waited for a writer is over
			}
		},
	},
	{
		Name:  "a read hold that is released or expires shortens no other one of its owner",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			for _, outerFirst := range []bool{true, false} {
				lock := e.pages(t).Read()
				outer := locktest.Acquire(t, lock, rlock.Lease(time.Minute))
				inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Lease(time.Hour))
				leaves, stays := outer, inner
				if !outerFirst {
					leaves, stays = inner, outer
				}
				locktest.Unlock(t, leaves)
				time.Sleep(50 * time.Minute)
				require.True(t, stays.Valid())
				require.InDelta(t, 10*time.Minute, infoOf(t, lock).TTL, float64(time.Second))
				locktest.Unlock(t, stays)
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name:  "a reader that died delays a writer by its own lease only, though others read on",
		Kept:  only("read"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			lock, died := e.pages(t), time.Now()
			locktest.Acquire(t, e.pages(t).Read(), rlock.Lease(10*time.Second))
			live := locktest.Acquire(t, lock.Read(), rlock.Watchdog)
			writer := e.waiter(t.Context(), t, lock.Write())
			time.Sleep(3 * time.Second)
			locktest.Unlock(t, live)
			locktest.Unlock(t, locktest.Acquired(t, writer))
			require.InDelta(t, 10*time.Second, time.Since(died), float64(50*time.Millisecond))
		},
	},
	{
		Name: "ForceUnlock of one side ends the holds of that side, and of a writer its reads",
		Kept: only("read"),
		Test: func(t *testing.T, e *Env, _ Kind) {
			lock, owner := e.pages(t), rlock.WithOwner(t.Context())
			force := func(side *rlock.Lock) bool {
				held, err := side.ForceUnlock(t.Context())
				require.NoError(t, err)
				return held
			}
			write := locktest.AcquireWith(owner, t, lock.Write(), rlock.Watchdog)
			read := locktest.AcquireWith(owner, t, lock.Read(), rlock.Watchdog)
			require.False(t, force(lock.Read()), "the lock is a writer's")
			require.True(t, write.Valid() && read.Valid())
			waiting := e.waiter(t.Context(), t, lock.Read())
			require.True(t, force(lock.Write()))
			require.ErrorIs(t, write.Err(), rlock.ErrForced)
			require.ErrorIs(t, read.Err(), rlock.ErrForced)
			reader := locktest.Acquired(t, waiting)
			require.False(t, force(lock.Write()), "the lock is a reader's")
			require.True(t, reader.Valid())
			waiting = e.waiter(t.Context(), t, lock.Write())
			require.True(t, force(lock.Read()))
			require.ErrorIs(t, reader.Err(), rlock.ErrForced)
			locktest.Unlock(t, locktest.Acquired(t, waiting))
			require.False(t, force(lock.Read()) || force(lock.Write()))
		},
	},
}

// pages returns the read-write lock called page, as a new party sees it.
func (e *Env) pages(t *testing.T, options ...func(*rlock.Options)) *rlock.ReadWriteLock {
	t.Helper()
	return e.Party(t, options...).Client.NewReadWriteLock("page")
}
