//go:build redis

package rlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

const (
	numbersLease = 250 * time.Millisecond
	// numbersOwners is how many goroutines of each process want the lock.
	numbersOwners = 4
)

// journal records an acquisition once, if its owner holds the lock at this moment. It returns the
// number of entries, or 0 if the owner does not hold it.
//
// KEYS[1] lock, KEYS[2] journal; ARGV[1] owner, ARGV[2] token
const journal = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local entry = ARGV[2] .. ' ' .. ARGV[1]
if redis.call('LINDEX', KEYS[2], -1) == entry then
  return redis.call('LLEN', KEYS[2])
end
return redis.call('RPUSH', KEYS[2], entry)`

func init() { processes["numbered"] = acquireNumbers }

// acquireNumbers takes one fenced lock again and again. It prints the token and the owner of each
// acquisition before it does anything else, then records it in the journal. It never ends by
// itself.
func acquireNumbers(args []string) error {
	runtime.GOMAXPROCS(1) // there are eight of these
	option := rueidis.ClientOption{InitAddress: []string{args[0]}, PipelineMultiplex: -1}
	option.Dialer.Timeout = time.Second
	redis, err := rueidis.NewClient(option)
	for err != nil { // the server is down
		<-time.After(10 * time.Millisecond)
		redis, err = rueidis.NewClient(option)
	}
	defer redis.Close()
	c, err := rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	note := rueidis.NewLuaScript(journal)
	failed := make(chan error)
	for range numbersOwners {
		go func() {
			for {
				if err := acquireNumber(c.NewFencedLock("order"), redis, note); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// acquireNumber locks and unlocks once. It returns errors that no fault of this test explains.
func acquireNumber(lock *rlock.Lock, redis rueidis.Client, note *rueidis.Lua) error {
	hold, err := lock.Lock(context.Background(), numbersLease)
	if err != nil {
		return err
	}
	fmt.Println(hold.Token(), hold.Owner())
	for hold.Valid() {
		ctx, cancel := context.WithDeadline(context.Background(), hold.Deadline())
		_, err := note.Exec(ctx, redis, []string{"order", "journal"},
			[]string{hold.Owner(), strconv.FormatInt(hold.Token(), 10)}).AsInt64()
		cancel()
		if err == nil {
			break
		}
	}
	err = hold.Unlock(context.Background())
	if errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrOutcomeUnknown) {
		return nil
	}
	return err
}

// told has what the processes have printed: tokens by owner. It survives whatever the server
// forgets.
type told struct {
	mu     sync.Mutex
	tokens map[string]int64 // guarded by mu
	wrong  []string         // guarded by mu
}

// listen records what a process prints until it ends.
func (n *told) listen(p *process) {
	for lines := bufio.NewScanner(p.Stdout); lines.Scan(); {
		var token int64
		var owner string
		if _, err := fmt.Sscan(lines.Text(), &token, &owner); err != nil ||
			strings.Count(owner, ":") != 1 {
			continue // killed in the middle of a line
		}
		n.mu.Lock()
		if _, known := n.tokens[owner]; known {
			n.wrong = append(n.wrong, owner+" acquired twice")
		}
		n.tokens[owner] = token
		n.mu.Unlock()
	}
}

// TestTokensIncreaseOverAllAcquisitionsWhateverIsKilled has eight processes take one lock. It kills
// and stops them, and kills and restarts the server, at random. HOLDFAST_FENCED_ACQUISITIONS is the
// number of acquisitions: 100000 take a minute, and two with the race detector.
// HOLDFAST_FENCED_SEED draws other faults. See make random.
//
// Redis orders acquisitions: one comes after another if the other's owner no longer held the lock
// in Redis when it began. Clocks and pipes of processes cannot show that, since a process can be
// stopped between its acquisition and any report. So each owner records its token in a list in
// Redis, by a script that does so only while the owner holds the lock. Owners hold it one after
// another, so the list has the order of the acquisitions. It lacks those of holders that were
// killed or stopped too early, which only leaves gaps.
//
// A server that forgets would forget the list with the counter. So each owner also prints its token
// for the test before that: no two owners may print the same one, whatever the server knows of
// them.
func TestTokensIncreaseOverAllAcquisitionsWhateverIsKilled(t *testing.T) {
	t.Parallel()
	want := locktest.Times(t, "HOLDFAST_FENCED_ACQUISITIONS", 2000)
	d := dice(locktest.Seed(t, "HOLDFAST_FENCED_SEED"), 0, 0)
	s := redistest.Start(t, redistest.WithAppendOnly())

	said := &told{tokens: map[string]int64{}}
	var listeners sync.WaitGroup
	running := make([]*process, 8)
	start := func(i int) {
		p := startProcess(t, "numbered", s.Addr())
		reap := p.Adopt()
		running[i] = p
		listeners.Go(func() {
			said.listen(p)
			reap()
		})
	}
	killAll := func() {
		for _, p := range running {
			if p != nil {
				_ = p.Kill() // it may have ended
			}
		}
		listeners.Wait()
	}
	t.Cleanup(killAll)
	for i := range running {
		start(i)
	}
	var kills, stops, restarts int
	began, restartAt := time.Now(), want/6
	for n := 0; n < want || stops == 0 || restarts < 5; n = int(s.DoInt(t, "LLEN", "journal")) {
		i := d.IntN(len(running))
		switch {
		case n >= restartAt && restartAt <= want:
			restartAt += want / 6
			s.Restart(t)
			restarts++
		case (kills+stops)%3 != 2:
			require.NoError(t, running[i].Kill())
			start(i)
			kills++
		default: // it resumes after others have held the lock
			stopped := running[i]
			require.NoError(t, stopped.Signal(syscall.SIGSTOP))
			<-time.After(numbersLease + upTo(d, numbersLease))
			require.NoError(t, stopped.Signal(syscall.SIGCONT))
			stops++
		}
		<-time.After(upTo(d, 500*time.Millisecond))
	}
	took := time.Since(began)
	killAll()

	entries := s.DoStrings(t, "LRANGE", "journal", "0", "-1")
	given := make([]int64, 0, len(said.tokens))
	for _, token := range said.tokens {
		given = append(given, token)
	}
	t.Logf(
		"%d acquisitions noted, %d told, in %v; %d processes killed, %d stopped, the server %d times",
		len(entries),
		len(given),
		took.Round(time.Millisecond),
		kills,
		stops,
		restarts,
	)
	require.Empty(t, said.wrong)
	slices.Sort(given)
	for i := 1; i < len(given); i++ {
		require.Less(t, given[i-1], given[i], "issued twice")
	}
	last := int64(0)
	for _, entry := range entries {
		var token int64
		var owner string
		_, err := fmt.Sscan(entry, &token, &owner)
		require.NoError(t, err)
		if token <= last {
			require.Greater(t, token, last, "not larger than the one before: %s", entry)
		}
		last = token
		if told, known := said.tokens[owner]; !known || told != token {
			require.Equal(t, told, token, "its owner printed another: %s", entry)
		}
	}
	counter, err := strconv.ParseInt(s.DoString(t, "GET", orderCounter), 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, counter, given[len(given)-1], "the counter went back")
	require.Positive(t, kills)
	require.Positive(t, stops)
	require.GreaterOrEqual(t, restarts, 5)
}
