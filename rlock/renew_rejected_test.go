package rlock_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/lua"
	"holdfast/rlock"
)

// The keys of renew.lua are the first arguments, then the lease, then the owners.
func renewedKeys(args []string) []string { return args[:len(args)/2] }

// takeAll takes locks with these names.
func (b *bubble) takeAll(t *testing.T, names ...string) (holds []*rlock.Hold) {
	t.Helper()
	for _, name := range names {
		holds = append(holds, take(t, b.client.NewLock(name), rlock.Watchdog))
	}
	return holds
}

func TestLockWhoseRenewalIsRejectedCostsNoOtherItsLease(t *testing.T) {
	for _, rejection := range []string{
		"NOPERM No permissions to access a key",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 1 127.0.0.1:1",
		"ERR Script attempted to access a non local key in a cluster node",
		"ERR user_script:12: something went wrong",
	} {
		t.Run(rejection, func(t *testing.T) {
			var log logtest.Lines
			options := rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()}
			inBubble(t, options, func(t *testing.T, b *bubble) {
				b.reply("renew.lua", func(args []string) any {
					if slices.Contains(renewedKeys(args), "bad") {
						return errors.New(rejection)
					}
					return renewed(len(renewedKeys(args)))
				})
				bad := take(t, b.client.NewLock("bad"), rlock.Watchdog)
				others := b.takeAll(t, "a", "b", "c")
				time.Sleep(time.Minute)
				for _, hold := range others {
					require.NoError(t, hold.Err())
				}
				require.ErrorIs(t, bad.Err(), rlock.ErrExpired)
				require.ErrorContains(t, bad.Err(), "Redis rejected the renewal: ")
				warned := log.With("lock not renewed")
				require.Len(t, warned, 1)
				require.Contains(t, warned[0], "lock=bad")
				require.NoError(t, others[0].Unlock(t.Context()))
			})
		})
	}
}

// One command more for each lock would change nothing.
func TestRejectionThatConcernsTheWholeServerIsNotTriedLockByLock(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		b.takeAll(t, "a", "b", "c")
		b.reply("renew.lua", func(args []string) any {
			if len(renewedKeys(args)) != 3 {
				t.Errorf("a command for %q", renewedKeys(args))
			}
			return errors.New("LOADING Redis is loading the dataset in memory")
		})
		time.Sleep(20 * time.Second)
		require.NotEmpty(t, b.called("renew.lua"))
	})
}

// Redis Software and Redis Cloud look like one node, and have slots behind it.
func TestServerThatLooksAtSlotsGetsOneRenewalForEach(t *testing.T) {
	for name, sameNode := range map[string]func(a, b string) bool{
		"slots":    func(a, b string) bool { return lua.Slot(a) == lua.Slot(b) },
		"any keys": func(a, b string) bool { return a == b },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
				var rejected atomic.Int64
				b.reply("renew.lua", func(args []string) any {
					keys := renewedKeys(args)
					for _, key := range keys {
						if !sameNode(key, keys[0]) {
							rejected.Add(1)
							return errors.New("CROSSSLOT Keys in request don't hash to the same slot")
						}
					}
					return renewed(len(keys))
				})
				var names []string
				for i := range 5 {
					names = append(names, fmt.Sprintf("{%d}a", i), fmt.Sprintf("{%d}b", i))
				}
				holds := b.takeAll(t, names...)
				time.Sleep(25 * time.Second) // two periods
				before, tries := len(b.called("renew.lua")), rejected.Load()
				time.Sleep(10 * time.Second)
				commands := 5
				if name == "any keys" {
					commands = 10
				}
				require.Len(t, b.called("renew.lua"), before+commands)
				require.Equal(t, tries, rejected.Load(), "it is tried again in vain")
				time.Sleep(10 * time.Minute)
				for _, hold := range holds {
					require.NoError(t, hold.Err())
				}
			})
		})
	}
}
