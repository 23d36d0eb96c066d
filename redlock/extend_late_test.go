package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/redlock"
	"holdfast/rlock"
)

// slowness is how late a slow node's replies are.
const slowness = 100 * time.Millisecond

// Otherwise a minority that fails would end the hold with the first lease.
func TestExtendAlsoReachesPartsWhoseGrantIsStillOnItsWay(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"extend", "nested"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{})
			warm(t, clients)
			slowDown(proxies[3:])
			// A node that does not reply in time is not asked again.
			patient := redlock.Options{FsyncAlways: true, NodeTimeout: longWait}
			l := redlock.NewOn(name, patient, clients...)
			hold := take(t, l, time.Minute)
			if how == "extend" {
				require.NoError(t, hold.Extend(t.Context(), longLease))
			} else {
				defer unlock(t, takeWith(hold.Context(), t, l, longLease))
			}
			eventually(t, func() bool { return l.Parts(hold) == 5 }, "all granted")
			eventually(t, func() bool {
				for _, s := range servers {
					if s.DoInt(t, "PTTL", name) < (longLease / 2).Milliseconds() {
						return false
					}
				}
				return true
			}, "all nodes keep it for as long")
		})
	}
}

// slowDown delays the replies through the proxies.
func slowDown(proxies []*faultproxy.Proxy) {
	for _, p := range proxies {
		p.Delay(slowness / 2) // each way
	}
}
