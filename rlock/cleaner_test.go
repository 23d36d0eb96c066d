package rlock

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
)

// withCleaner returns a client with only a cleaner, and a function that closes it.
func withCleaner(t *testing.T) (c *Client, shut func()) {
	t.Helper()
	c = &Client{redis: goneRedis{}, group: wait.NewGroup(), closing: make(chan struct{})}
	c.log.client, c.log.inline = c, true
	c.transport = transport.New(idleRedis{}, transport.Options{})
	c.cleaner = newCleaner(c)
	shut = sync.OnceFunc(func() {
		close(c.closing)
		c.cleaner.close()
		c.group.Wait()
	})
	t.Cleanup(shut)
	return c, shut
}

// goneRedis panics if something is sent.
type goneRedis struct{ rueidis.Client }

func (goneRedis) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

// stub is a kind of lock whose cleanups are tested.
type stub struct {
	kind
	removes func(owners []string) error
}

func (k stub) cleanUp(batch []cleanup) (lua.Released, error) {
	var owners []string
	for _, l := range batch {
		owners = append(owners, l.request.owner)
	}
	return lua.Released{}, k.removes(owners)
}

// stubbed returns a lock of that kind.
func stubbed(name string, most int, removes func(owners []string) error) *Lock {
	return &Lock{name: name, waiting: new(waiting), traits: traits{cleanups: most},
		kind: stub{removes: removes}}
}

// left returns a cleanup of an owner that lasts for an hour.
func (l *Lock) left(owner string) cleanup {
	return cleanup{lock: l, request: request{owner: owner}, until: time.Now().Add(time.Hour)}
}

// recorded returns a lock whose commands are told on sent. A command takes a second.
func recorded(name string, most int, sent chan<- string) *Lock {
	return stubbed(name, most, func(owners []string) error {
		sent <- name + " " + strings.Join(owners, "+")
		time.Sleep(time.Second)
		return nil
	})
}

// news returns what was sent since the last call, sorted.
func news(sent <-chan string) (all []string) {
	synctest.Wait()
	for range len(sent) {
		all = append(all, <-sent)
	}
	slices.Sort(all)
	return all
}

func TestCleanerRemovesByOneCommandWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withCleaner(t)
		sent := make(chan string, 100)
		plain := recorded("plain", 1, sent)
		queue := recorded("queue", 3, sent)
		another := recorded("another", 3, sent)
		for _, owner := range []string{"1", "2", "3", "4", "5"} {
			c.cleaner.add(queue.left(owner))
			synctest.Wait()
		}
		c.cleaner.add(plain.left("1"))
		c.cleaner.add(plain.left("2"))
		c.cleaner.add(another.left("1"))
		require.Equal(t, []string{"another 1", "plain 1", "plain 2", "queue 1"}, news(sent))
		time.Sleep(time.Second)
		require.Equal(t, []string{"queue 2+3+4"}, news(sent),
			"those that came while a command was under way")
		time.Sleep(time.Second)
		require.Equal(t, []string{"queue 5"}, news(sent))
	})
}

// Each cleanup gets one more try, but none if the server hangs. It does not hang if some commands
// are refused and others take long.
func TestCleanerOfAClosingClientTriesAllOnceMore(t *testing.T) {
	const many = 10 * mostAtOnce
	refused := &rediserr.Error{Class: rediserr.ClassTemporary}
	for name, of := range map[string]struct {
		end   func(n int64) error
		tries int
	}{
		"some are refused, and others are released late": {func(n int64) error {
			if n%2 == 0 {
				return refused
			}
			time.Sleep(time.Minute)
			return nil
		}, many},
		"a hook ends their goroutines": {func(int64) error {
			runtime.Goexit()
			return nil
		}, many},
		"hung": {func(int64) error {
			time.Sleep(time.Minute)
			return refused
		}, mostAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, shut := withCleaner(t)
				c.options.CommandTimeout = time.Second
				var tries atomic.Int64
				lock := stubbed("job", 1, func([]string) error {
					if n := tries.Add(1); c.isClosing() {
						return of.end(n)
					}
					return refused
				})
				for range many {
					c.cleaner.add(lock.left("1"))
				}
				time.Sleep(5 * time.Second)
				tries.Store(0)
				shut()
				require.EqualValues(t, of.tries, tries.Load())
			})
		})
	}
}

// There would be more and more of them while a server is down.
func TestCleanerDropsCleanupsThatAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withCleaner(t)
		sent := make(chan string, 100)
		lock := recorded("lock", 10, sent)
		for _, l := range []struct {
			owner string
			lasts time.Duration
		}{{"over", 0}, {"first", time.Hour}, {"over soon", time.Second / 2}, {"lasting", time.Hour}} {
			of := lock.left(l.owner)
			of.until = time.Now().Add(l.lasts)
			c.cleaner.add(of)
			synctest.Wait()
		}
		require.Equal(t, []string{"lock first"}, news(sent))
		time.Sleep(time.Second)
		require.Equal(t, []string{"lock lasting"}, news(sent))
	})
}

// The delay doubles from 10 ms at first, then grows with the age of the cleanup.
func TestCleanupOfALateCommandIsRepeatedMoreSeldomWithAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := withCleaner(t)
		began := time.Now()
		var ages []time.Duration
		lock := stubbed("job", 1, func([]string) error {
			ages = append(ages, time.Since(began))
			return nil
		})
		l := lock.left("1")
		l.retry, l.until = true, began.Add(24*time.Hour)
		c.cleaner.add(l)
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

// What callers of a fair lock have left to a server that hangs may queue for them.
func TestCallersOfAFairLockWaitWhileManyRepliesAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backlog{byLock: make(map[string]debt)}
		requirePasses := func(lock string, want bool, after time.Duration) {
			began, budget := time.Now(), wait.NewBudget(t.Context(), nil, time.Second)
			require.Equal(t, want, b.waitForRoom(lock, budget))
			require.Equal(t, after, time.Since(began))
		}
		b.add("job", mostOwed)
		requirePasses("job", true, 0) // as many replies may be lost
		b.add("job", 1)
		requirePasses("job", false, time.Second)
		requirePasses("another", true, 0)
		time.AfterFunc(300*time.Millisecond, func() { b.add("job", -1) })
		requirePasses("job", true, 300*time.Millisecond)
		b.add("job", -mostOwed)
		require.Empty(t, b.byLock)
	})
}
