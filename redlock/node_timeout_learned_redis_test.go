//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"holdfast/redlock"
	"holdfast/rlock"
)

// The servers do not know the scripts yet, which costs another round trip.
func TestFreeLockIsAcquiredFromDistantServersOfWhichOneHangs(t *testing.T) {
	t.Parallel()
	clients, proxies := proxied(t, startNodes(t, 5), rlock.Options{})
	for _, p := range proxies {
		p.Delay(40 * time.Millisecond) // each way
	}
	proxies[4].BlackHole()
	for range 10 {
		unlock(
			t,
			takeAgain(
				t,
				redlock.NewOn(
					name,
					redlock.Options{FsyncAlways: true, MaxLease: longLease},
					clients...),
			),
		)
	}
}
