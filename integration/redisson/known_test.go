//go:build interop

package redisson_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// fault is what some releases of Redisson do wrong among themselves, too. Tests of this library
// beside Redisson expect it of these releases.
type fault struct {
	name        string
	what        string  // as in docs/porting.md
	from, fixed release // the first with it, and the first without; zero if there is none
	topology    func(testing.TB, *peer) *site
	// shows plays the scene with Java on both sides, and reports whether it went wrong.
	shows func(t *testing.T, s *site) bool
}

// in reports whether a release has the fault.
func (f *fault) in(r release) bool {
	return !r.before(f.from) && (f.fixed == release{} || r.before(f.fixed))
}

// releases returns which releases have the fault, as docs/porting.md says it.
func (f *fault) releases() string {
	switch none := (release{}); {
	case f.fixed == none:
		return "all releases"
	case f.from == none:
		return fmt.Sprintf("before %v", f.fixed)
	}
	return fmt.Sprintf("from %v, before %v", f.from, f.fixed)
}

// The faults that the matrix has met.
var (
	multiLockWithoutWait = &fault{
		name:     "MultiLockWithoutWait",
		what:     "`tryLock` of a MultiLock or RedLock without wait fails, and may free held locks",
		fixed:    release{3, 17, 1},
		topology: newSingle,
	}
	channelsByChance = &fault{
		name: "ChannelsByChance",
		what: "on a cluster, Java clients may not wake each other",
		from: release{3, 22, 0}, fixed: asksForShardedChannels,
		topology: newCluster,
	}
	fairWaitersOversleep = &fault{
		name:     "FairWaitersOversleep",
		what:     "a fair waiter may miss the end of a lease, and wait for ever",
		fixed:    release{3, 32, 0},
		topology: newSingle,
		shows:    aFairWaiterOversleeps,
	}
	strangersUnlockReadWriteLocks = &fault{
		name:     "StrangersUnlockReadWriteLocks",
		what:     "`unlock` of a free read-write lock throws no exception",
		fixed:    release{3, 44, 0},
		topology: newSingle,
		shows:    func(t *testing.T, s *site) bool { return strangerUnlocks(t, s, write) },
	}
	readersAreNotRenewed = &fault{
		name: "ReadersAreNotRenewed",
		what: "only the first read lock of a batch is renewed",
		from: release{3, 44, 0}, fixed: release{4, 0, 0},
		topology: newSingle,
		shows: func(t *testing.T, s *site) bool {
			return aReadLockIsLost(t, s, both(read).hold, both(read).hold)
		},
	}
	nestedReadersAreNotRenewed = &fault{
		name: "NestedReadersAreNotRenewed",
		what: "a read lock that its owner holds twice is not renewed",
		from: release{3, 44, 0}, fixed: release{4, 0, 0},
		topology: newSingle,
		shows: func(t *testing.T, s *site) bool {
			l := both(read).hold
			return aReadLockIsLost(t, s, l, l)
		},
	}
	readersRenewOthers = &fault{
		name:     "ReadersRenewOthers",
		what:     "a reader renews the leases of dead readers, which block writers",
		fixed:    release{4, 4, 0},
		topology: newSingle,
		shows:    aReaderRenewsAnother,
	}
	strangersUnlockFairLocks = &fault{
		name:     "StrangersUnlockFairLocks",
		what:     "`unlock` of a free fair lock throws no exception",
		topology: newSingle,
		shows:    func(t *testing.T, s *site) bool { return strangerUnlocks(t, s, fair) },
	}
)

// Their actors know these faults.
func init() {
	multiLockWithoutWait.shows = multiLockWithoutWaitFails
	channelsByChance.shows = clientsUseDifferentChannels
}

// faults has them in the order in which they were fixed.
var faults = []*fault{multiLockWithoutWait, channelsByChance, fairWaitersOversleep,
	strangersUnlockReadWriteLocks, readersAreNotRenewed, nestedReadersAreNotRenewed,
	readersRenewOthers, strangersUnlockFairLocks}

// Each fault shows with Java on both sides in the releases that are said to have it, and in no
// other.
func TestFaultsOfRedissonAreItsOwn(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	java := startPeer(t)
	for _, f := range faults {
		assert.Contains(t, string(page), "\n| "+f.releases()+" | "+f.what+" |")
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			shows := f.shows(t, f.topology(t, java))
			assert.Equal(t, f.in(beside), shows, "Redisson %v: %s", beside, f.what)
		})
	}
}

// The holder takes a lock again.
func multiLockWithoutWaitFails(t *testing.T, s *site) bool {
	l := target{multi, []string{newName(), newName()}}
	holder := newThread(s.java, s.clients)
	require.NoError(t, holder.tryLock(l, time.Second, longLease))
	var got bool
	require.NoError(t, holder.do("tryLock", l, 0, longLease, &got))
	lost := count(t, holder, l) == 0
	require.Equal(t, !got, lost)
	return lost
}

func strangerUnlocks(t *testing.T, s *site, kind string) bool {
	err := newJavaActor(t, s).unlock(both(kind).hold)
	if err != nil {
		require.ErrorIs(t, err, errNotHolder)
	}
	return err == nil
}

// The holder extends its lease while another waits, and leaves it to its end.
func aFairWaiterOversleeps(t *testing.T, s *site) bool {
	const first, extended, wait = 3 * time.Second, 5 * time.Second, 9 * time.Second
	l := both(fair).hold
	holder, waiter := newJavaActor(t, s), newJavaActor(t, s)
	acquire(t, holder, l, rlock.Lease(first))
	waiting := inBackground(func() error { return waiter.tryLock(l, wait, longLease) })
	s.waitForWaiters(t, l, 1)
	acquire(t, holder, l, rlock.Lease(extended))
	err := (<-waiting).err
	if err != nil {
		require.ErrorIs(t, err, errRefused)
	}
	return err != nil
}

// leaseKeys returns the keys with the leases of the readers of a lock.
func (s *site) leaseKeys(t testing.TB, name string) []string {
	t.Helper()
	var found []string
	for _, key := range s.keys(t, name) {
		if strings.Contains(key, ":rwlock_timeout:") {
			found = append(found, key)
		}
	}
	return found
}

// aReadLockIsLost reports whether the next reader that leaves frees a lock whose leases have ended.
func aReadLockIsLost(t *testing.T, s *site, locks ...target) bool {
	reader := newJavaActor(t, s)
	ended := readsThatEnd(t, s, reader, locks...)
	if ended < 0 {
		return false
	}
	another := newJavaActor(t, s)
	acquire(t, another, locks[ended], longLease)
	unlock(t, another, locks[ended])
	return count(t, reader, locks[ended]) == 0
}

// readsThatEnd has one thread take several read locks with the watchdog. It returns the first whose
// leases end because they are not renewed, or -1 if all are.
func readsThatEnd(t *testing.T, s *site, reader actor, locks ...target) int {
	t.Helper()
	for _, l := range locks {
		acquire(t, reader, l, rlock.Watchdog)
	}
	last, renewed := make([]map[string]time.Duration, len(locks)), make([]bool, len(locks))
	for i := range last {
		last[i] = make(map[string]time.Duration) // by key: one for each level
	}
	ended := -1
	locktest.Eventually(t, func() bool {
		for i, l := range locks {
			keys := s.leaseKeys(t, l.name())
			if len(keys) == 0 {
				ended = i
				return true
			}
			for _, key := range keys {
				left := s.pttl(t, key)
				before, seen := last[i][key]
				renewed[i] = renewed[i] || seen && left > before
				last[i][key] = left
			}
		}
		return !slices.Contains(renewed, false)
	}, "the leases are neither renewed nor over")
	return ended
}

// One reader has a shorter lease, another the watchdog's, which is renewed after a third of it. The
// former outlasts that even if the machine stands still for two seconds.
func aReaderRenewsAnother(t *testing.T, s *site) bool {
	const lease = watchdogLease * 7 / 8
	l := both(read).hold
	acquire(t, newJavaActor(t, s), l, rlock.Lease(lease))
	short := s.leaseKeys(t, l.name())
	require.Len(t, short, 1)
	acquire(t, newJavaActor(t, s), l, rlock.Watchdog)
	var left time.Duration
	locktest.Eventually(t, func() bool {
		left = s.pttl(t, short[0])
		return left < 0 || left > lease
	}, "the short lease is neither over nor renewed")
	return left > lease
}

// Clients of one process wait for locks, until two of them listen on different channels. Then one
// does not wake the other.
func clientsUseDifferentChannels(t *testing.T, s *site) bool {
	most := 2 * len(s.nodes)
	if channelsByChance.in(beside) {
		most = 40 // if one in three chooses otherwise, it is among so many
	}
	holder := newJavaActor(t, s)
	var waiting []<-chan outcome
	var classic, sharded *javaActor
	for i := 0; i < most && (classic == nil || sharded == nil); i++ {
		client, addresses := newName(), s.addresses()
		first := i % len(addresses) // some releases ask the first
		s.java.open(t, client, s.topology, slices.Concat(addresses[first:], addresses[:first]),
			watchdogLease)
		l, thread := both(reentrant).hold, newThread(s.java, []string{client})
		acquire(t, holder, l, longLease)
		waiting = append(waiting,
			inBackground(func() error { return thread.tryLock(l, told, longLease) }))
		s.waitForWaiters(t, l, 1)
		channel := l.channels()[0]
		if s.node(t, channel).DoMap(t, "PUBSUB", "SHARDNUMSUB", channel)[channel] == "0" {
			classic = newThread(s.java, thread.clients)
		} else {
			sharded = newThread(s.java, thread.clients)
		}
	}
	for _, w := range waiting {
		require.ErrorIs(t, (<-w).err, errRefused)
	}
	if classic == nil || sharded == nil {
		return false
	}
	l := both(reentrant).hold
	acquire(t, classic, l, longLease)
	waits := inBackground(func() error { return sharded.tryLock(l, told, longLease) })
	s.waitForWaiters(t, l, 1)
	s.letSleep(t, l)
	unlock(t, classic, l)
	return errors.Is((<-waits).err, errRefused)
}
