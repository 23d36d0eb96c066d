//go:build redis

package multilock_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

const (
	forks = 5
	// tables is the number of processes, and diners the number of philosophers in each.
	tables, diners = 3, 3
	// famine is the longest that a philosopher waits: many times what it takes all others to eat.
	famine = 20 * time.Second
)

func init() { processes["philosophers"] = dine }

// table is one process's access to the forks.
type table struct {
	redis   []rueidis.Client
	clients []*rlock.Client
}

// dine lets the philosophers of one process eat until it is told to stop, and prints how often each
// of them did. They draw their forks from the seed, which is the first argument. The servers'
// addresses follow.
func dine(args []string) error {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	addresses := args[1:]
	runtime.GOMAXPROCS(1)
	t := &table{}
	for i, address := range addresses {
		redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
		if err != nil {
			return err
		}
		defer redis.Close()
		c, err := rlock.New(redis, rlock.Options{
			Server: "server " + strconv.Itoa(i), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close(context.Background()) }() // the process ends
		t.redis, t.clients = append(t.redis, redis), append(t.clients, c)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()

	done := make(chan struct{})
	var meals [diners]int
	failed := make(chan error, diners)
	var eating sync.WaitGroup
	for i := range diners {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		eating.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := t.eat(dice); err != nil {
					failed <- err
					return
				}
				meals[i]++
			}
		})
	}
	go func() {
		lines.Scan()
		close(done)
	}()
	eating.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	fmt.Println(meals)
	return nil
}

// eat takes two or three neighbouring forks, in any order, and uses them.
func (t *table) eat(dice *rand.Rand) error {
	ctx := context.Background()
	first, n := dice.IntN(forks), 2+dice.IntN(2)
	var wanted []int
	var locks []rlock.Locker
	for _, i := range dice.Perm(n) {
		fork := (first + i) % forks
		wanted, locks = append(wanted, fork), append(locks, t.fork(fork))
	}
	hold, err := multilock.New(locks...).TryLock(ctx, famine, rlock.Watchdog)
	if err != nil {
		return fmt.Errorf("forks %v: %w", wanted, err)
	}
	for _, fork := range wanted {
		if err := t.count(fork, 1, 1); err != nil {
			return err
		}
	}
	for _, fork := range wanted {
		if err := t.count(fork, -1, 0); err != nil {
			return err
		}
	}
	return hold.Unlock(ctx)
}

// fork returns a fork: every other one is on the last server, and with several servers two are of
// other kinds.
func (t *table) fork(i int) *rlock.Lock {
	c, name := t.clients[i%len(t.clients)], "fork "+strconv.Itoa(i)
	switch {
	case len(t.clients) > 1 && i == 3:
		return c.NewFencedLock(name)
	case len(t.clients) > 1 && i == 4:
		return c.NewFairLock(name)
	default:
		return c.NewLock(name)
	}
}

// count adds to the number of users of a fork, which must be want then.
func (t *table) count(fork int, by, want int64) error {
	redis := t.redis[fork%len(t.redis)]
	add := redis.B().Incrby().Key("users of " + strconv.Itoa(fork)).Increment(by).Build()
	users, err := redis.Do(context.Background(), add).AsInt64()
	if err == nil && users != want {
		err = fmt.Errorf("fork %d has %d users, want %d", fork, users, want)
	}
	return err
}

// TestDiningPhilosophersAllEat lets philosophers in three processes take neighbouring forks, named
// in any order. They must never wait in a circle, which would show as an exceeded wait. It runs for
// HOLDFAST_PHILOSOPHERS_TIME, as in 60s, and HOLDFAST_PHILOSOPHERS_SEED draws other forks. See make
// random.
func TestDiningPhilosophersAllEat(t *testing.T) {
	t.Parallel()
	lasts := locktest.Length(t, "HOLDFAST_PHILOSOPHERS_TIME", 3*time.Second)
	seed := locktest.Seed(t, "HOLDFAST_PHILOSOPHERS_SEED")
	for name, servers := range map[string]int{"forks on two servers": 2, "forks on one server": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var redises []*redistest.Server
			var addresses []string
			for range servers {
				s := redistest.Start(t)
				redises, addresses = append(redises, s), append(addresses, s.Addr())
			}
			var running []*process
			for i := range uint64(tables) {
				args := append([]string{strconv.FormatUint(seed+i, 10)}, addresses...)
				running = append(running, startProcess(t, "philosophers", args...))
			}
			for _, p := range running {
				require.Equal(t, "ready", p.Line(t))
			}
			for _, p := range running {
				p.Tell(t, "eat")
			}
			<-time.After(lasts)
			for _, p := range running {
				p.Tell(t, "stop")
			}
			total := 0
			for _, p := range running {
				for meals := range strings.FieldsSeq(strings.Trim(p.Line(t), "[]")) {
					n, err := strconv.Atoi(meals)
					require.NoError(t, err)
					require.Positive(t, n, "a philosopher starved")
					total += n
				}
				p.Wait(t)
			}
			t.Logf("%d meals in %v", total, lasts)
			for _, s := range redises {
				for _, key := range left(t, s) {
					require.True(t, strings.HasPrefix(key, "users of "), key)
					require.Equal(t, "0", s.DoString(t, "GET", key))
				}
			}
		})
	}
}
