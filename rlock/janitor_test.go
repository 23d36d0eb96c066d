package rlock

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// withJanitor returns a client that has a janitor and nothing else, and what closes it.
func withJanitor(t *testing.T) (c *Client, shut func()) {
	t.Helper()
	c = &Client{redis: goneRedis{}, tasks: newTasks(), closing: make(chan struct{})}
	c.janitor = newJanitor(c)
	shut = sync.OnceFunc(func() {
		close(c.closing)
		c.tasks.wait()
	})
	t.Cleanup(shut)
	return c, shut
}

// goneRedis panics if something is sent.
type goneRedis struct{ rueidis.Client }

func (goneRedis) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

// stub is a kind of lock of whose leftovers so many are released by one command.
type stub struct {
	kind
	most      int
	withdraws func(owners []string) error
}

func (k stub) batch() int { return k.most }

func (k stub) withdraw(_ rueidis.CoreClient, bids ...bid) (lua.Released, error) {
	var owners []string
	for _, b := range bids {
		owners = append(owners, b.owner)
	}
	return lua.Released{}, k.withdraws(owners)
}

// left returns a leftover of an owner, which lasts for an hour.
func (l *Lock) left(owner string) leftover {
	return leftover{lock: l, bid: bid{owner: owner}, until: time.Now().Add(time.Hour)}
}

// commands notes which owners each command releases. A command takes a second.
type commands struct {
	mu       sync.Mutex
	sent     []string // guarded by mu
	underway int      // guarded by mu
	most     int      // guarded by mu
}

// lock returns a lock whose commands are noted, and end with what end returns.
func (of *commands) lock(name string, most int, end func() error) *Lock {
	return &Lock{name: name, kind: stub{most: most, withdraws: func(owners []string) error {
		of.mu.Lock()
		of.sent = append(of.sent, name+" "+strings.Join(owners, "+"))
		of.underway++
		of.most = max(of.most, of.underway)
		of.mu.Unlock()
		time.Sleep(time.Second)
		of.mu.Lock()
		of.underway--
		of.mu.Unlock()
		return end()
	}}}
}

// news returns what was sent since the last call, sorted.
func (of *commands) news() []string {
	synctest.Wait()
	of.mu.Lock()
	defer of.mu.Unlock()
	news := of.sent
	of.sent = nil
	slices.Sort(news)
	return news
}

func succeed() error { return nil }

func fail() error { return &lua.Error{Class: lua.Temporary} }

func TestJanitorReleasesByOneCommandWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		var of commands
		plain, queue, another := of.lock("plain", 1, succeed), of.lock("queue", 3, succeed), of.lock("another", 3, succeed)
		for _, owner := range []string{"1", "2", "3", "4", "5"} {
			c.janitor.add(queue.left(owner))
			synctest.Wait()
		}
		c.janitor.add(plain.left("1"))
		c.janitor.add(plain.left("2"))
		c.janitor.add(another.left("1"))
		require.Equal(t, []string{"another 1", "plain 1", "plain 2", "queue 1"}, of.news())
		time.Sleep(time.Second)
		require.Equal(t, []string{"queue 2+3+4"}, of.news(), "those that came while a command was under way")
		time.Sleep(time.Second)
		require.Equal(t, []string{"queue 5"}, of.news())
	})
}

func TestJanitorSendsOneCommandAtATimeFromASeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		var of commands
		lock, one, other := of.lock("lock", 1, succeed), new(seat), new(seat)
		from := func(at *seat, owner string) {
			l := lock.left(owner)
			l.seat = at
			c.janitor.add(l)
		}
		from(one, "1")
		from(one, "2")
		from(other, "3")
		require.Equal(t, []string{"lock 1", "lock 3"}, of.news())
		time.Sleep(time.Second)
		require.Equal(t, []string{"lock 2"}, of.news())
	})
}

// Callers may leave at any pace, and one command after the other would be too slow.
func TestJanitorHasManyCommandsUnderWayButNotAnyNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		var of commands
		lock := of.lock("lock", 1, succeed)
		for range 3 * mostAtOnce {
			c.janitor.add(lock.left("1"))
		}
		require.Len(t, of.news(), mostAtOnce)
		time.Sleep(2 * time.Second)
		require.Len(t, of.news(), 2*mostAtOnce)
		require.Equal(t, mostAtOnce, of.most)
	})
}

// As on a cluster of which one shard hangs, or refuses.
func TestWhatTheJanitorCannotReleaseDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		var of commands
		lock, refusing := of.lock("lock", 1, succeed), of.lock("refusing", 1, fail)
		hanging := of.lock("hanging", 1, func() error {
			time.Sleep(time.Minute)
			return fail()
		})
		c.janitor.add(hanging.left("1"))
		c.janitor.add(refusing.left("1"))
		require.Equal(t, []string{"hanging 1", "refusing 1"}, of.news())
		for range 100 {
			c.janitor.add(lock.left("1"))
			require.Contains(t, of.news(), "lock 1")
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// The first tries are soon, however many others fail.
func TestJanitorTriesAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		down := &Lock{name: "down", kind: stub{most: 1, withdraws: func([]string) error { return fail() }}}
		for range 2000 {
			c.janitor.add(down.left("1"))
		}
		time.Sleep(2 * time.Second)
		var tries []time.Duration
		began := time.Now()
		busy := &Lock{name: "busy", kind: stub{most: 1, withdraws: func([]string) error {
			tries = append(tries, time.Since(began))
			return fail()
		}}}
		c.janitor.add(busy.left("1"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Less(t, tries[1], 15*time.Millisecond)
		require.Less(t, tries[4], 200*time.Millisecond)
		require.Greater(t, len(tries), 10)
		require.Less(t, len(tries), 50)
	})
}

// During an outage they pile up. When it is over, none of them may keep others out for long.
func TestJanitorIsThroughSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, outage = 5000, 5 * time.Second
		c, _ := withJanitor(t)
		began := time.Now()
		var tries atomic.Int64
		lock := &Lock{name: "job", kind: stub{most: 1, withdraws: func([]string) error {
			tries.Add(1)
			if time.Since(began) < outage {
				return fail()
			}
			return nil
		}}}
		for range many {
			c.janitor.add(lock.left("1"))
		}
		time.Sleep(outage)
		require.Less(t, tries.Load(), int64(15*many), "it keeps a processor busy")
		time.Sleep(time.Second)
		c.janitor.mu.Lock()
		defer c.janitor.mu.Unlock()
		require.False(t, c.janitor.working)
		require.Zero(t, cap(c.janitor.ready)+cap(c.janitor.waiting)+len(c.janitor.lanes), "memory is kept")
	})
}

// Everything gets one more try, and nothing does when the server has hung. It has not when some
// commands are refused, and others take long.
func TestJanitorOfAClosingClientTriesAllOnceMore(t *testing.T) {
	const many = 10 * mostAtOnce
	minute := func(then func() error) func() error {
		return func() error {
			time.Sleep(time.Minute)
			return then()
		}
	}
	var n atomic.Int64
	for name, of := range map[string]struct {
		end   func() error
		tries int
	}{
		"refused":  {fail, many},
		"released": {succeed, many},
		"some are refused, and others are released late": {func() error {
			if n.Add(1)%2 == 0 {
				return fail()
			}
			return minute(succeed)()
		}, many},
		"hung": {minute(fail), mostAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, shut := withJanitor(t)
				c.options.CommandTimeout = time.Second
				var tries atomic.Int64
				lock := &Lock{name: "job", kind: stub{most: 1, withdraws: func([]string) error {
					tries.Add(1)
					if c.closes() {
						return of.end()
					}
					return fail()
				}}}
				for range many {
					c.janitor.add(lock.left("1"))
				}
				time.Sleep(5 * time.Second)
				tries.Store(0)
				shut()
				require.EqualValues(t, of.tries, tries.Load())
			})
		})
	}
}

// One that hangs does not keep the others from their last try.
func TestJanitorOfAClosingClientTriesAllWhileOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shut := withJanitor(t)
		c.options.CommandTimeout = time.Second
		var of commands
		hanging := of.lock("hanging", 1, func() error {
			time.Sleep(time.Minute)
			return fail()
		})
		lock, queue := of.lock("lock", 1, succeed), of.lock("queue", 10, succeed)
		c.janitor.add(hanging.left("1"))
		c.janitor.add(queue.left("first"))
		require.Len(t, of.news(), 2)
		for range 5 * mostAtOnce {
			c.janitor.add(lock.left("1"))
			c.janitor.add(queue.left("1")) // to be released when the first has been
		}
		shut()
		released := slices.DeleteFunc(of.news(), func(sent string) bool { return sent == "hanging 1" })
		require.Len(t, released, 5*mostAtOnce+5*mostAtOnce/10)
	})
}

// What is adrift of one fair lock is repeated by one command, as far as it is due at the same time.
func TestJanitorRepeatsByOneCommandWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shut := withJanitor(t)
		var of commands
		queue := of.lock("queue", 100, succeed)
		for range 100 {
			l := queue.left("1")
			l.adrift = true
			c.janitor.add(l)
		}
		time.Sleep(10 * time.Second)
		of.news()
		shut()
		require.LessOrEqual(t, len(of.news()), 2, "one may have been under way")
	})
}

func TestJanitorOfAClosedClientDoesNothing(t *testing.T) {
	c, shut := withJanitor(t)
	shut()
	c.janitor.add(new(Lock).left("1"))
	require.False(t, c.janitor.working)
}

// Of a server that is down for long there would be more and more.
func TestJanitorForgetsWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		var of commands
		lock := of.lock("lock", 10, succeed)
		for _, l := range []struct {
			owner string
			lasts time.Duration
		}{{"over", 0}, {"first", time.Hour}, {"over soon", time.Second / 2}, {"lasting", time.Hour}} {
			of := lock.left(l.owner)
			of.until = time.Now().Add(l.lasts)
			c.janitor.add(of)
			synctest.Wait()
		}
		require.Equal(t, []string{"lock first"}, of.news())
		time.Sleep(time.Second)
		require.Equal(t, []string{"lock lasting"}, of.news())
	})
}

// It may have taken a place as well, which is found by what was asked for.
func TestWhatIsAdriftIsUndoneAsItWasAskedFor(t *testing.T) {
	c := &Client{options: Options{WatchdogLease: time.Second}}
	c.janitor = newJanitor(c)
	c.janitor.working = true // so that it is looked at here
	asked := bid{owner: "client:1", window: time.Minute, enlists: true, gift: time.Second}
	g := &holding{client: c, lock: &Lock{kind: reentrant{}}, owner: "client:1", adrift: &asked}
	began := time.Now()
	g.undoAdrift()
	require.Len(t, c.janitor.ready, 1)
	l := c.janitor.ready[0].items[0]
	require.Equal(t, asked, l.bid)
	require.True(t, l.adrift)
	require.False(t, l.until.Before(began.Add(placeKept)))
}

// It doubles from 10 ms at first, then grows with what it is about.
func TestWhatIsAdriftIsReleasedTheMoreSeldomTheOlderItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withJanitor(t)
		began := time.Now()
		var ages []time.Duration
		lock := &Lock{name: "job", kind: stub{most: 1, withdraws: func([]string) error {
			ages = append(ages, time.Since(began))
			return nil
		}}}
		l := lock.left("1")
		l.adrift, l.until = true, began.Add(24*time.Hour)
		c.janitor.add(l)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		require.Greater(t, len(ages), 40)
		require.Less(t, len(ages), 100)
		for i, age := range ages[1:] {
			require.LessOrEqual(t, age-ages[i], max(time.Second, age/4))
		}
		require.Greater(t, ages[len(ages)-1], 12*time.Hour)
	})
}
