//go:build redis

package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// throng is callers that keep asking for one fair lock and hardly wait for it.
type throng struct {
	clients  []*rlock.Client
	acquired atomic.Int64
	refused  atomic.Int64
	stop     context.CancelFunc
	callers  sync.WaitGroup
}

// throngSize is the number of callers, of four clients.
const throngSize = 20

// gather starts a throng whose callers ask as given.
func gather(t *testing.T, s *redistest.Server, ask func(*rlock.Lock) (*rlock.Hold, error)) *throng {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &throng{stop: stop}
	for range 4 {
		client := newClient(t, s, rlock.Options{})
		c.clients = append(c.clients, client)
		for range throngSize / 4 {
			c.callers.Go(func() {
				l := client.NewFairLock("job")
				for ctx.Err() == nil {
					hold, err := ask(l)
					if err != nil {
						c.refused.Add(1)
						continue
					}
					c.acquired.Add(1)
					<-time.After(time.Millisecond) // of work
					_ = hold.Unlock(context.Background())
				}
			})
		}
	}
	t.Cleanup(c.leave)
	return c
}

// leave ends the throng.
func (c *throng) leave() {
	c.stop()
	c.callers.Wait()
}

// requireAlive requires that callers keep acquiring the lock. On an idle machine they do so
// hundreds of times a second.
func (c *throng) requireAlive(t *testing.T, s *redistest.Server) {
	t.Helper()
	c.watch(t, s, &c.acquired, 5, "nobody gets a lock that nobody keeps")
}

// requireDeparted requires that callers come and go, and leave nothing behind.
func (c *throng) requireDeparted(t *testing.T, s *redistest.Server) {
	t.Helper()
	c.watch(t, s, &c.refused, 25*throngSize, "callers stay for longer than they wait")
}

// watch waits until a count has grown, and requires meanwhile that the registrations of callers
// that left are removed.
func (c *throng) watch(
	t *testing.T, s *redistest.Server, count *atomic.Int64, by int64, otherwise string,
) {
	t.Helper()
	before := count.Load()
	eventually(t, func() bool {
		require.Less(t, s.DoInt(t, "LLEN", fairQueue), int64(10*throngSize),
			"registrations outlive their waiters")
		return count.Load() >= before+by
	}, otherwise)
}

// servedBeforeAndAfterAPause requires that callers acquire the lock before the server hangs, and
// afterwards.
func servedBeforeAndAfterAPause(t *testing.T, s *redistest.Server, c *throng) {
	t.Helper()
	c.requireAlive(t, s)
	s.Do(t, "CLIENT", "PAUSE", "400", "WRITE")
	c.requireAlive(t, s)
}

func TestFairLockOutlivesImpatientCallers(t *testing.T) {
	asking := func(limit func() time.Duration) func(*rlock.Lock) (*rlock.Hold, error) {
		return func(l *rlock.Lock) (*rlock.Hold, error) {
			ctx, cancel := context.WithTimeout(context.Background(), limit())
			defer cancel()
			return l.Lock(ctx, rlock.Watchdog)
		}
	}
	short := func() time.Duration { return 10*time.Millisecond + rand.N(20*time.Millisecond) }
	shorter := func() time.Duration { return rand.N(15 * time.Millisecond) }
	for name, of := range map[string]struct {
		ask    func(*rlock.Lock) (*rlock.Hold, error)
		played func(t *testing.T, s *redistest.Server, c *throng)
	}{
		"waits": {func(l *rlock.Lock) (*rlock.Hold, error) {
			return l.TryLock(rlock.WithOwner(context.Background()), short(), rlock.Watchdog)
		}, servedBeforeAndAfterAPause},
		"deadlines": {asking(short), servedBeforeAndAfterAPause},
		// On a busy machine most of these are gone before they could take their turn.
		"shorter deadlines": {asking(shorter), func(t *testing.T, s *redistest.Server, c *throng) {
			c.requireDeparted(t, s)
			s.Do(t, "CLIENT", "PAUSE", "400", "WRITE")
			c.requireDeparted(t, s)
		}},
		// The server does not know when these leave: what they send while it hangs is executed as
		// if they were still there.
		"cancelled contexts": {func(l *rlock.Lock) (*rlock.Hold, error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer time.AfterFunc(shorter(), cancel).Stop()
			defer cancel()
			return l.Lock(ctx, rlock.Watchdog)
		}, func(t *testing.T, s *redistest.Server, c *throng) { c.requireDeparted(t, s) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			c := gather(t, s, of.ask)
			of.played(t, s, c)
			lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
			for _, meanwhile := range []func(){func() {}, c.leave} {
				meanwhile()
				hold, err := lock.TryLock(t.Context(), longWait, rlock.Watchdog)
				require.NoError(t, err)
				unlock(t, hold)
			}
			within(t, longWait, func() {
				for _, client := range c.clients {
					require.NoError(t, client.Close(t.Context()))
				}
			})
			require.Empty(t, s.Keys(t), "registrations are left")
		})
	}
}

func init() { processes["many waiters"] = waitInMasses }

// waitersEach is how many waiters such a process has.
const waitersEach = 100

// waitInMasses has many callers wait for a fair lock.
func waitInMasses(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	c, err := rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for range waitersEach {
		go func() { _, _ = c.NewFairLock("job").Lock(context.Background(), rlock.Watchdog) }()
	}
	fmt.Println("waiting")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// None of them has a listener, which one check shows.
func TestFairLockIsAcquiredSoonAfterManyWaitersWereKilled(t *testing.T) {
	const killed = 10
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	first := take(t, c.NewFairLock("job"), rlock.Watchdog)
	var dying []*process
	for range killed {
		dying = append(dying, startProcess(t, "many waiters", s.Addr()))
	}
	eventually(t, func() bool { return s.DoInt(t, "LLEN", fairQueue) == killed*waitersEach },
		"not all of them wait")
	behind := lockInBackground(t.Context(), c.NewFairLock("job"), rlock.Watchdog)
	waitForQuiet(t, s)
	for _, p := range dying {
		require.NoError(t, p.Kill())
	}
	eventually(t, func() bool { return len(s.DoStrings(t, "PUBSUB", "CHANNELS")) == 1 },
		"the dead listen still")
	unlock(t, first)
	released := time.Now()
	o := result(t, behind)
	require.NoError(t, o.Err)
	// Half a second for one turn; a waiter that is not woken asks after 5 s.
	require.Less(t, o.At.Sub(released), 3*time.Second, "it asked by itself, without being woken")
	unlock(t, o.Hold)
	require.Empty(t, s.Keys(t))
}

// They give up after at most 15 ms, and a reply takes 20. However often the lock was granted to
// them, it is released soon, not after a round trip for each.
func TestCallersThatLeaveBeforeTheReplyKeepNobodyOut(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		const callers, exits = 20, 2000
		s := redistest.Start(t)
		var clients []*rlock.Client
		var departed atomic.Int64
		var storm sync.WaitGroup
		for range 4 {
			far := faultproxy.Start(t, s.Addr())
			far.Delay(10 * time.Millisecond)
			client := newClientOn(t, s.Client(t, far.Use), rlock.Options{})
			clients = append(clients, client)
			for range callers / 4 {
				storm.Go(func() {
					l := k.lock(client, k.name)
					for departed.Add(1) <= exits {
						hold, err := l.TryLock(t.Context(), 1+rand.N(15*time.Millisecond), rlock.Watchdog)
						if err == nil {
							_ = hold.Unlock(t.Context())
						}
					}
				})
			}
		}
		storm.Wait()
		contender := k.contender(newClient(t, s, rlock.Options{}), k.name)
		newcomer, err := contender.TryLock(t.Context(), 3*time.Second, rlock.Watchdog)
		require.NoError(t, err)
		unlock(t, newcomer)
		within(t, 3*time.Second, func() {
			for _, client := range clients {
				require.NoError(t, client.Close(t.Context()))
			}
		})
	})
}
