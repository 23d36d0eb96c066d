//go:build unix

package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/faultproxy"
	"holdfast/internal/faults"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// stubborn says TERM when it is sent that, and goes on, as does its child.
func stubborn(flags ...string) []string {
	return append(append(flags, "job"), shell(`trap 'echo TERM >&3' TERM; `+ignoresTERM+
		`echo in >&3; `+waits)...)
}

// The server is stopped under a running command. Its clock runs on, so that the lease in Redis ends
// at the instant that a second client read just before. TERM and KILL come earlier.
func TestRunEndsItsCommandBeforeTheLeaseCanEndInAServerThatHangs(t *testing.T) {
	t.Parallel()
	const atOnce = 10
	rounds := locktest.Times(t, "HOLDFAST_RUN_ROUNDS", 5)
	var intact, earliest, measured atomic.Int64
	earliest.Store(int64(time.Hour))
	for begun := 0; begun < rounds; begun += atOnce {
		t.Run("rounds", func(t *testing.T) {
			for range min(atOnce, rounds-begun) {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					left, kept := hangUnderRun(t)
					measured.Add(1)
					if kept {
						intact.Add(1)
					}
					for {
						least := earliest.Load()
						if int64(left) >= least || earliest.CompareAndSwap(least, int64(left)) {
							break
						}
					}
				})
			}
		})
	}
	require.EqualValues(t, rounds, measured.Load())
	t.Logf("%d rounds; the command was dead %v or more before the lease ended; the resumed server "+
		"still had the lease in %d", rounds, time.Duration(earliest.Load()), intact.Load())
}

// hangUnderRun plays a round. It returns how long before the end of the lease the command was dead,
// and whether the resumed server still had the lock then, or run had released it already.
func hangUnderRun(t *testing.T) (left time.Duration, kept bool) {
	t.Helper()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), stubborn("--lease", "9s")...)
	j.line(t, "in")
	// Right after a renewal, so that none can come between the two.
	var end time.Time
	for stopped := false; !stopped; {
		end = renewed(t, redis)
		at := time.Now()
		redis.Pause(t)
		if stopped = time.Since(at) < 300*time.Millisecond; !stopped { // on a busy machine
			redis.Resume(t)
		}
	}
	term := j.line(t, "TERM")
	kill := j.dead(t)
	redis.Resume(t)
	held := redis.DoInt(t, "PTTL", "job") > 0
	server := redis.DoStrings(t, "TIME")
	require.True(t, term.at.Before(end), "TERM came %v after the end", term.at.Sub(end))
	require.True(t, kill.at.Before(end), "KILL came %v after the end", kill.at.Sub(end))
	require.Equal(t, 76, j.status(t))
	require.Contains(t, j.stderr.String(), "was not renewed")
	require.NotContains(t, j.stderr.String(), "rueidis", "advice is for users of the program")
	require.Len(t, server, 2)
	return end.Sub(kill.at), held
}

func TestRunIsSafeUnderEachFaultOfItsServer(t *testing.T) {
	t.Parallel()
	for name, fault := range faults.All() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renews := fault.Effect == faults.Nothing || name == "is out of memory"
			lease := 4 * time.Second // some faults end after 5 s
			if renews {
				lease = 9 * time.Second // a busy machine may come late with renewals
			}
			redis := redistest.Start(t, fault.Options...)
			proxy := faultproxy.Start(t, redis.Addr())
			j := startRun(t, proxy.Addr(), stubborn("--lease", lease.String())...)
			j.line(t, "in")
			victim := &faults.Victim{Server: redis, Proxy: proxy, Lock: "job",
				ForceUnlock: func(t testing.TB) { redis.Do(t, "DEL", "job") }}
			end := renewed(t, redis)
			fault.Begin(t, victim)
			switch {
			case fault.LosesLock && name != "is down and comes back empty":
				// Run hears of it with the next renewal, when the lock may be another's.
				require.True(t, j.line(t, "TERM").at.Before(end))
				j.dead(t)
			case renews:
				require.Eventually(t, func() bool {
					at, err := redis.Call("PEXPIRETIME", "job") // the fault may concern this as well
					return err == nil && time.UnixMilli(at.(int64)).Sub(end) > lease
				}, longest, 10*time.Millisecond)
				j.lives(t)
				fault.End(t, victim)
				j.signal(t, unix.SIGTERM)
				j.line(t, "TERM")
				j.signal(t, unix.SIGKILL)
				j.dead(t)
				return
			default:
				// A renewal may have come right before the fault.
				end = end.Add(lease / 3)
				require.True(t, j.line(t, "TERM").at.Before(end))
				require.True(t, j.dead(t).at.Before(end))
			}
			require.Equal(t, 76, j.status(t))
			fault.End(t, victim)
		})
	}
}

// A lock that is granted by a release has a short lease, until it is renewed.
func TestRunThatIsHandedTheLockHasTheWholeLease(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	first := startRun(t, redis.Addr(), forEver()...)
	first.line(t, "in")
	second := startRun(t, redis.Addr(), forEver()...)
	require.Eventually(t, func() bool {
		return strings.Contains(second.stderr.String(), "waiting for")
	}, longest, time.Millisecond)
	first.signal(t, unix.SIGTERM)
	second.line(t, "in")
	require.Greater(t, redis.DoInt(t, "PTTL", "job"), int64(20_000))
}
